"""Limits, objects with a state of service, connections, variables and tries in the words of people, and the commands about them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Literal

from evenflow.core.service_states import ObjectKind, ServiceState

SealedKind = Literal["connection", "variable"]
CONNECTION: SealedKind = "connection"
VARIABLE: SealedKind = "variable"

_LIMITS = {
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
_WORDS: dict[str, str] = {
    ServiceState.ACTIVE: "active",
    ServiceState.DRAINING: "draining",
    ServiceState.RESUME_ONLY: "open only for what resumes and cleans up",
    ServiceState.PAUSED: "paused",
    ServiceState.FROZEN: "frozen",
}


@dataclass(frozen=True, slots=True)
class TryName:
    """A try, by the names that people use."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    try_number: int


def limit_name(kind: str, name: str) -> str:
    """Returns for example ``pool warehouse``, ``max_active_tasks of sales/2026-01-01``."""
    return _LIMITS[kind].format(name)


def way_to_raise(kind: str, name: str, capacity: int) -> str:
    """Returns what to type, or to write, so that the limit has this capacity."""
    if kind == "pool":
        return shlex.join(["evenflow", "pools", "set", name, str(capacity)])
    if kind in _SETTINGS:
        return f"write {_SETTINGS[kind]}={capacity} into the file of the DAG; it holds once the file is read, also for what runs"
    return shlex.join(["evenflow", "executors", "set", name, "--slots", str(capacity)])


def in_words(state: str) -> str:
    return _WORDS.get(state, state)


def title(kind: str, name: str) -> str:
    """Returns the object's name for the beginning of a sentence."""
    return "The whole system" if kind == ObjectKind.SYSTEM else f"The {'DAG' if kind == ObjectKind.DAG else kind} {name}"


def way_to_activate(kind: str, name: str) -> str:
    """Returns the command that brings the object back into full service."""
    if kind == ObjectKind.SYSTEM:
        return "evenflow activate --all"
    return shlex.join(["evenflow", "activate", *([name] if kind == ObjectKind.DAG else [f"--{kind}", name])])
