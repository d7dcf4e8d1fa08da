"""Days and states under the names that DAG files import from Airflow."""

from __future__ import annotations

from enum import IntEnum

from evenflow.core.states import RunState, TaskState


class WeekDay(IntEnum):
    """Days of the week, from 1 for Monday to 7, as ``date.isoweekday()`` counts them."""

    MONDAY = 1
    TUESDAY = 2
    WEDNESDAY = 3
    THURSDAY = 4
    FRIDAY = 5
    SATURDAY = 6
    SUNDAY = 7


class State:
    """The states of tasks and runs in one place. ``TaskInstanceState`` and ``DagRunState`` have them as enums."""

    NONE = None
    REMOVED = TaskState.REMOVED
    SCHEDULED = TaskState.SCHEDULED
    QUEUED = TaskState.QUEUED
    RUNNING = TaskState.RUNNING
    SUCCESS = TaskState.SUCCESS
    FAILED = TaskState.FAILED
    UP_FOR_RETRY = TaskState.UP_FOR_RETRY
    UP_FOR_RESCHEDULE = TaskState.UP_FOR_RESCHEDULE
    UPSTREAM_FAILED = TaskState.UPSTREAM_FAILED
    SKIPPED = TaskState.SKIPPED
    DEFERRED = TaskState.DEFERRED

    finished = frozenset({TaskState.SUCCESS, TaskState.FAILED, TaskState.SKIPPED, TaskState.UPSTREAM_FAILED, TaskState.REMOVED})
    unfinished = frozenset(TaskState) - finished - {TaskState.NONE}
    success_states = frozenset({TaskState.SUCCESS, TaskState.SKIPPED})
    failed_states = frozenset({TaskState.FAILED, TaskState.UPSTREAM_FAILED})
    dag_states = tuple(RunState)
