"""Which moves call an author's functions, and in which work these run.

A call is ordinary work for a worker: a run of the DAG ``CALLBACK_DAG``, which the migration makes and which has one task. So it has
a pool, tries, logs and a history without special rules, and nothing in it can reach the run that it is about.
``docs/adr/0010-callbacks-are-work.md`` has the alternatives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from evenflow.core.states import HOLDING, RunState, TaskEvent, TaskState

OWN_DAGS = "evenflow_"  # prefix of the ids of Evenflow's own DAGs: no file may define them
CALLBACK_DAG = f"{OWN_DAGS}callbacks"
CALLBACK_POOL = "callback_pool"


class Callback(StrEnum):
    """Events that call functions, under the names of the authors' options."""

    EXECUTE = "on_execute_callback"  # in the process of the try, before the task
    SUCCESS = "on_success_callback"
    FAILURE = "on_failure_callback"
    RETRY = "on_retry_callback"
    SKIPPED = "on_skipped_callback"
    DEADLINE = "deadline_callback"


CLEAN_UP = (
    "clean_up"  # the event of a call of Evenflow's own: on_kill of an operator whose try is over and has left something outside
)
OF_TASKS = (Callback.EXECUTE, Callback.SUCCESS, Callback.FAILURE, Callback.RETRY, Callback.SKIPPED)
OF_DAGS = (Callback.SUCCESS, Callback.FAILURE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackOf:
    """The call that a try makes instead of its task: the function at ``position`` among those of ``event``, and what it is told."""

    event: str
    position: int
    state: str  # of what the call is about
    reason: str | None = None
    started_at: str | None = None  # of the try that the call is about, as far as known; ISO 8601 with offset
    ended_at: str | None = None
    notifier: Mapping[str, Any] | None = None  # of a rule, which calls in place of a function: the fields of RuleNotifier


class NotifierKind(StrEnum):
    """What rules send by."""

    WEBHOOK = "webhook"
    SLACK = "slack"
    TEAMS = "teams"
    PAGERDUTY = "pagerduty"
    EMAIL = "email"


class NotifiedEvent(StrEnum):
    """What rules are for."""

    RUN_FAILED = "run_failed"
    RUN_SUCCEEDED = "run_succeeded"
    TASK_FAILED = "task_failed"  # after its last try
    TASK_RETRIED = "task_retried"
    DEADLINE_MISSED = "deadline_missed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleNotifier:
    """How a rule tells what has happened: by which notifier, with which connections."""

    rule: str
    kind: str
    conn_id: str
    signed_by: str | None = None
    recipients: Sequence[str] = ()


class CallbackCall(NamedTuple):
    """A function to be called. ``task_index`` is None for a function of the DAG."""

    run_key: int
    task_index: int | None
    map_index: int
    try_number: int
    of: CallbackOf


def of_move(was: TaskState, event: TaskEvent, state: TaskState) -> Callback | None:
    """Returns the event that a move of a task instance calls. A task that never ran because of others (skipped, upstream_failed)
    calls nothing, and neither does a mark that a person sets on such a task.
    """
    match event, state:
        case TaskEvent.RETRY, _:
            return Callback.RETRY
        case TaskEvent.SUCCEED, _:
            return Callback.SUCCESS
        case (TaskEvent.FAIL, _) | (TaskEvent.CANCEL, TaskState.FAILED):
            return Callback.FAILURE
        case TaskEvent.SKIP, _ if was in HOLDING:
            return Callback.SKIPPED
        case _:
            return None


def of_run(state: RunState) -> Callback:
    """Returns the event that the end of a run calls."""
    return Callback.SUCCESS if state is RunState.SUCCESS else Callback.FAILURE


def counted(callbacks: Sequence[str]) -> dict[Callback, int]:
    """Returns how many functions each event calls, from the list in a spec."""
    found: dict[Callback, int] = {}
    for name in callbacks:
        found[Callback(name)] = found.get(Callback(name), 0) + 1
    return found
