"""Turns the ``executor_config`` of a task into what Evenflow's own tasks say of their pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenflow.airflow.loading.refusals import DagRefusals
from evenflow.core.limits import MAX_POD_OVERRIDE
from evenflow.core.pods.override import TRY_CONTAINER, PodOverride

_BASE = "base"  # Airflow's name of the container of the task
_OF_ANY_POD = ("apiVersion", "kind")


def pod_override_of(executor_config: Any, refusals: DagRefusals, of: str) -> dict[str, Any] | None:
    """Returns the ``pod_override`` of the config. Executors other than Kubernetes ignore it, in Airflow as here."""
    if not executor_config:
        return None
    for name in sorted(executor_config.keys() - {"pod_override"}):
        refusals.add(f"executor_config with {name!r}", "Say it in the template of an executor, and name its queue by queue=.", of)
    override = _override(executor_config.get("pod_override"))
    if override and (flaw := PodOverride(MAX_POD_OVERRIDE).flaw(override)):
        refusals.add("executor_config with this pod_override", f"It {flaw}.", of)
    return override or None


def _override(pod: Any) -> dict[str, Any]:
    if not pod:
        return {}
    plain = dict(pod) if isinstance(pod, Mapping) else _plain(pod)
    override = {name: value for name, value in plain.items() if name not in _OF_ANY_POD}
    spec = override.get("spec")
    if isinstance(spec, Mapping) and isinstance(spec.get("containers"), list):
        override["spec"] = {**spec, "containers": [_renamed(each) for each in spec["containers"]]}
    return override


def _plain(pod: Any) -> dict[str, Any]:
    """Returns a pod of the Kubernetes client, without what it does not say."""
    from kubernetes.client import ApiClient

    plain: dict[str, Any] = ApiClient().sanitize_for_serialization(pod)
    return plain


def _renamed(container: Any) -> Any:
    is_base = isinstance(container, Mapping) and container.get("name") == _BASE
    return {**container, "name": TRY_CONTAINER} if is_base else container
