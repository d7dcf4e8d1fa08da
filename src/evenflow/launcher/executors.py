"""What speaks to each kind of executor, loaded when there is one."""

from __future__ import annotations

from dataclasses import dataclass

from evenflow.core.executors import CELERY
from evenflow.errors import SettingsError
from evenflow.launcher.executor import LaunchLedger, PushExecutor
from evenflow.store.serving.executors import ExecutorRow


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherSettings:
    """Where brokers and clusters are, with what lets this launcher in: infrastructure, which the database never holds."""

    celery_broker: str = ""


def make_executor(row: ExecutorRow, ledger: LaunchLedger, settings: LauncherSettings) -> PushExecutor:
    """Raises :class:`SettingsError` when this launcher has not what it needs for it."""
    match row.kind:
        case kind if kind == CELERY:
            from evenflow.launcher.celery import CeleryExecutor

            return CeleryExecutor(settings.celery_broker)
        case _:
            raise SettingsError(f"This launcher cannot serve executors of kind {row.kind}.")
