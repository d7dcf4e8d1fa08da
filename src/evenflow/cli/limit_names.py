"""Limits as their authors and operators know them, and how to change them."""

from __future__ import annotations

import shlex

_NAMES = {
    "pool": "pool {}",
    "executor": "executor {}",
    "dag_task": "max_active_tis_per_dag of {}",
    "dag_runs": "max_active_runs of {}",
    "run": "max_active_tasks of {}",
    "run_task": "max_active_tis_per_dagrun of {}",
}
_SETTINGS = {
    "dag_task": "max_active_tis_per_dag",
    "dag_runs": "max_active_runs",
    "run": "max_active_tasks",
    "run_task": "max_active_tis_per_dagrun",
}


def limit_name(kind: str, name: str) -> str:
    """``pool warehouse``, ``max_active_tasks of sales/2026-01-01``."""
    return _NAMES[kind].format(name)


def way_to_raise(kind: str, name: str, capacity: int) -> str:
    """What to type, or to write, so that the limit has this capacity."""
    if kind == "pool":
        return shlex.join(["evenflow", "pools", "set", name, str(capacity)])
    if kind in _SETTINGS:
        return f"write {_SETTINGS[kind]}={capacity} into the file of the DAG; it holds once the file is read, also for what runs"
    return "its slots are fixed: nothing raises them yet"
