"""The executors of each kind, loaded when one exists."""

from __future__ import annotations

from dataclasses import dataclass

from evenflow.core.executors import CELERY, KUBERNETES
from evenflow.errors import ExtraMissing, SettingsError
from evenflow.launcher.executor import KubernetesSettings, LaunchLedger, PushExecutor
from evenflow.store.serving.executors import LaunchedExecutor


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherSettings:
    """The addresses of brokers and clusters, and this launcher's access: infrastructure, which the database never stores."""

    celery_broker: str = ""
    kubernetes: KubernetesSettings | None = None


def make_executor(row: LaunchedExecutor, ledger: LaunchLedger, settings: LauncherSettings) -> PushExecutor:
    """Raises :class:`SettingsError` when this launcher lacks what the executor needs."""
    match row.kind:
        case kind if kind == CELERY:
            try:
                from evenflow.launcher.celery import CeleryExecutor
            except ImportError as error:
                raise ExtraMissing("An executor of kind celery", "celery", error) from None
            return CeleryExecutor(settings.celery_broker)
        case kind if kind == KUBERNETES and settings.kubernetes is not None:
            from evenflow.launcher.kubernetes.executor import KubernetesExecutor

            return KubernetesExecutor(row, ledger, settings.kubernetes)
        case _:
            raise SettingsError(f"This launcher cannot serve executors of kind {row.kind}.")
