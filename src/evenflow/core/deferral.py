"""What a task keeps of its limits while it is deferred, and what it gives back and takes again when it resumes.

A task's pool decides about the slots, the system's settings about the other limits; a task may override both. What the task keeps
stays used from the first start to the end of the try. What it releases lets other tasks start meanwhile; the resume takes it again
without asking, so such a limit may be overdrawn, by its deferred tasks at most (R-ST1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from evenflow.core.settings import DEFERRED_KEEP_EXECUTOR_SLOT, DEFERRED_KEEP_RUN_CAP, DEFERRED_KEEP_TASK_LIMITS, SETTINGS
from evenflow.errors import BadValue

HOLD, RELEASE = "hold", "release"
AIRFLOW_TRIGGER = "evenflow.airflow.waiting.trigger.AirflowTrigger"  # what waits in the place of a trigger of Airflow's
AIRFLOW_WATCH = "evenflow.airflow.waiting.watch.AirflowWatch"  # the same for one that watches an asset


class Purpose(StrEnum):
    """What the resume of a deferred task is for."""

    EVENT = "event"  # its method is called with what the trigger said
    TIMEOUT = "timeout"  # the time that it gave is over
    FAILED = "failed"  # its trigger failed for good
    CLEAN_UP = "clean_up"  # the task ends from outside: the work that it left outside is to be stopped


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """How a try that was deferred resumes. Values are in JSON's own types, as ``sdk.xcom.encode`` makes them."""

    purpose: Purpose
    trigger: str  # the path of its class
    method: str  # that is called when there is an event
    kwargs: dict[str, Any] = field(default_factory=dict)
    trigger_kwargs: dict[str, Any] = field(default_factory=dict)
    event: Any = None
    deferred_s: float = 0.0  # since it was deferred the last time
    began_s: float = 0.0  # since the try began for the first time
    spent_s: float = 0.0  # of its execution_timeout
    reason: str | None = None  # why the trigger failed, or why the try is to be cleaned up
    secrets: list[str] = field(default_factory=list)  # texts in it that are masked in the log


class Terms(NamedTuple):
    """What decides about a limit: its kind, and of a pool what becomes of a slot."""

    limit_id: int
    kind: str
    while_deferred: str | None


@dataclass(frozen=True, slots=True)
class Keeping:
    """Which limits beside pools deferred tasks keep, by the system's settings. A setting that was not set has its default."""

    task_limits: bool = bool(SETTINGS[DEFERRED_KEEP_TASK_LIMITS].default)
    run: bool = bool(SETTINGS[DEFERRED_KEEP_RUN_CAP].default)
    executor: bool = bool(SETTINGS[DEFERRED_KEEP_EXECUTOR_SLOT].default)


class Split(NamedTuple):
    """Both parts are in the layout of a dispatch: where there are pool slots, the pool comes first."""

    holds: list[int]
    pool_slots: int
    retake: list[int]
    retake_slots: int


_NAMES = {"pool": "pool", "executor": "executor", "run": "run", "run_task": "task_limits", "dag_task": "task_limits"}


def split(
    holds: Sequence[int], pool_slots: int, terms: Iterable[Terms], keeping: Keeping, wishes: Mapping[str, str] | None
) -> Split:
    """Parts what a dispatch holds. ``wishes`` are the task's own, by the names of ``model.WAITING_HOLDS``."""
    by_limit = {term.limit_id: term for term in terms}
    out = Split([], pool_slots, [], 0)
    for position, limit in enumerate(holds):
        term = by_limit[limit]
        kept = is_kept(_NAMES[term.kind], keeping, wishes, pool=term.while_deferred)
        (out.holds if kept else out.retake).append(limit)
        if position == 0 and not kept:
            out = out._replace(pool_slots=0, retake_slots=pool_slots)
    return out


def is_kept(name: str, keeping: Keeping, wishes: Mapping[str, str] | None, *, pool: str | None = None) -> bool:
    """Returns whether a deferred task keeps a hold of this name of ``model.WAITING_HOLDS``. The task's own wish counts first, then
    what its ``pool`` says or, of other limits, the settings.
    """
    said = (wishes or {}).get(name, pool if name == "pool" else None)
    return getattr(keeping, name) if said is None and name != "pool" else said == HOLD


def amounts(holds: Sequence[int], pool_slots: int) -> Iterator[tuple[int, int]]:
    """How much of each limit that is."""
    for position, limit in enumerate(holds):
        yield limit, pool_slots if position == 0 and pool_slots else 1


def parse_while_deferred(text: str) -> str:
    """Raises :class:`BadValue` for what no pool can do with the slot of a deferred task."""
    if text not in (HOLD, RELEASE):
        raise BadValue(f"{text!r} is nothing that a pool can do with the slots of deferred tasks. Type {HOLD} or {RELEASE}")
    return text
