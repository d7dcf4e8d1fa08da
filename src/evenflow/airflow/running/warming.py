"""Loads and computes once what each task would, in the process from which all are forked."""

from __future__ import annotations

import importlib
from typing import Any

from airflow.sdk.execution_time import comms, task_runner
from airflow.sdk.listener import get_listener_manager
from airflow.sdk.plugins_manager import integrate_macros_plugins
from pydantic import JsonValue, TypeAdapter

from evenflow.airflow.airflow2 import old_context

# Found by comparing the modules of a task at its end with those at its start.
_LATE = (
    "airflow.providers.standard.decorators.python",
    "airflow.providers.standard.operators.bash",
    "airflow.sdk._shared.logging.factory",
    "airflow.sdk._shared.logging.remote",
    "airflow.sdk.definitions.asset.metadata",
    "encodings.idna",
    "jinja2.ext",
    "setproctitle",
)


class _Adapters:
    """Replaces Pydantic's class in the SDK's modules: one adapter for each type, where the SDK makes one for each task."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Any, TypeAdapter[Any]]] = {}  # by identity, because a type may not be hashable

    def __call__(self, kind: Any) -> TypeAdapter[Any]:
        if id(kind) not in self._made:
            self._made[id(kind)] = (kind, TypeAdapter(kind))
        return self._made[id(kind)][1]


def warm() -> None:
    for name in _LATE:
        importlib.import_module(name)
    integrate_macros_plugins()
    get_listener_manager()
    old_context.install()
    adapters = comms.TypeAdapter = task_runner.TypeAdapter = _Adapters()
    for kind in (comms.ToTask, JsonValue):
        adapters(kind)
