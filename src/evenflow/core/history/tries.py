"""What became of each try of a task instance, as its history tells it.

Theory of operation
-------------------
History has a row for each move: it opens a stay in a state, and the next row ends it. A try begins when it is queued under a number
that the one before did not have. What was waited for until then, its retry delay and its limits, belongs to it. It ends with what
its process said, or with what a person did to it. In between are its segments: each stay in which it waited or a process ran.

A try that resumes after a trigger, or that is sent again because its worker was lost, keeps its number, and so does a sensor that
looks again. A try that ended before its start was told has its running time in the row of its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any, NamedTuple

from evenflow.core.states import FINISHED, TaskEvent, TaskState

# In these a task instance is on its way: it waits for something that is its own, or a process of it runs.
_STAYS = frozenset(TaskState) - FINISHED - {TaskState.NONE}
_CLOSING = FINISHED | {TaskState.NONE, TaskState.UP_FOR_RETRY}
_SENDS = frozenset({TaskEvent.GRANT, TaskEvent.RESUME, TaskEvent.REQUEUE})
_BEGUN = frozenset({TaskState.QUEUED, TaskState.RUNNING, TaskState.DEFERRED, TaskState.UP_FOR_RESCHEDULE})


class TaskMove(NamedTuple):
    """A row of history, with the names of its task."""

    task_index: int
    map_index: int
    at: datetime
    xact: int
    epoch: int
    try_number: int
    event: str
    state: str
    detail: dict[str, Any]
    task_id: str
    operator: str


@dataclass(frozen=True, slots=True)
class TrySegment:
    """A part of a try: a process ran, or it waited in ``state``. ``begun_by`` and ``ended_by`` are moves; a process runs by the one
    that sent it to a worker, ``resume`` after a trigger. What is under way has no end. A worker that ended more than a week ago is
    not known any more. ``trigger`` is what it waited for.
    """

    state: str
    began_at: datetime
    ended_at: datetime | None
    took_s: float
    begun_by: str
    ended_by: str | None
    worker: str | None = None
    trigger: str | None = None
    reason: str | None = None


@dataclass(slots=True)
class TaskTry:
    """``state`` is that in which it ended, or is. What is under way counts until now."""

    try_number: int
    state: str
    segments: list[TrySegment] = field(default_factory=list)
    ended_at: datetime | None = None
    ended_by: str | None = None
    reason: str | None = None
    ran_s: float = 0.0
    waited_s: float = 0.0


def process_began(state: str, at: datetime, until: datetime, detail: Mapping[str, Any]) -> datetime:
    """Returns when a process began in a stay that ``detail`` has ended; ``until`` if none did."""
    if state == TaskState.RUNNING:
        return at
    if state == TaskState.QUEUED:  # its end may have come without its start
        return max(at, until - timedelta(seconds=float(detail.get("ran_s") or 0.0)))
    return until


def tries_of(moves: Sequence[TaskMove], now: datetime) -> list[TaskTry]:
    """``moves`` are of one task instance, in the order in which they happened; the first ones may be missing."""
    tries: list[TaskTry] = []
    ahead: list[TrySegment] = []  # of the try that is to come
    current: TaskTry | None = None
    sent_by = ""  # the move by which it was sent to a worker last
    for move, until in zip_longest(moves, moves[1:]):
        state = move.state
        sent_by = move.event if move.event in _SENDS else sent_by
        if state in _BEGUN and (current is None or (state == TaskState.QUEUED and current.try_number != move.try_number)):
            current = TaskTry(move.try_number, state, ahead)
            tries.append(current)
            ahead = []
        if current is not None:
            current.state = state
            if state in _CLOSING:
                current.ended_at, current.ended_by, current.reason = move.at, move.event, move.detail.get("reason")
                current = None
        if state in FINISHED or state == TaskState.NONE:
            ahead = []
        if state in _STAYS:
            (ahead if current is None else current.segments).extend(_segments(move, until, sent_by, now))
    if ahead:
        tries.append(TaskTry(tries[-1].try_number + 1 if tries else 1, moves[-1].state, ahead))
    for one in tries:
        one.ran_s = sum(part.took_s for part in one.segments if part.state == TaskState.RUNNING)
        one.waited_s = sum(part.took_s for part in one.segments if part.state != TaskState.RUNNING)
    return tries


def _segments(move: TaskMove, until: TaskMove | None, sent_by: str, now: datetime) -> list[TrySegment]:
    """Returns how it waited in a stay, and how a process ran in it. What one transaction wrote happened at once."""
    runs_by = sent_by or move.event
    trigger, worker = move.detail.get("trigger"), move.detail.get("worker")
    if until is None:
        runs = move.state == TaskState.RUNNING
        begun_by, reason = runs_by if runs else move.event, None if runs else move.detail.get("reason")
        took_s = max(0.0, (now - move.at).total_seconds())
        return [TrySegment(move.state, move.at, None, took_s, begun_by, None, worker if runs else None, trigger, reason)]
    began, reason = process_began(move.state, move.at, until.at, until.detail), until.detail.get("reason")
    found = []
    if move.state != TaskState.RUNNING and began > move.at and (until.xact != move.xact or began < until.at):
        is_all = began == until.at
        ended_by, why = (until.event, reason) if is_all else (TaskEvent.START.value, None)
        took_s = (began - move.at).total_seconds()
        found.append(TrySegment(move.state, move.at, began, took_s, move.event, ended_by, None, trigger, why))
    if began < until.at:
        took_s = (until.at - began).total_seconds()
        worker = until.detail.get("worker") or worker
        found.append(TrySegment(TaskState.RUNNING, began, until.at, took_s, runs_by, until.event, worker, None, reason))
    return found
