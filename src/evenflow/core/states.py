"""The state machine of task instances and runs: the one place that defines the legal moves.

Theory of operation
-------------------
A task instance (TI) waits in ``none`` until its upstreams allow it. Then it is *ready*: it enters a lane as ``scheduled``, and a
selection round *grants* it (``queued``: a dispatch with a fresh epoch exists, its holds are taken). A worker reports ``started``
and later one *exit* whose outcome decides. When readiness and grant fall into one transaction, the TI goes from ``none`` to
``queued`` directly. When a task has ended before its start was reported, the exit implies the start: so ``queued`` has every exit
that ``running`` has.

An event is the *cause* of a move. The control plane alone applies events, through :func:`move`, inside a transaction that
holds the run's lock, compares (state, epoch) and appends one history row per move. Workers never name states, they report outcomes.

Three groups of states matter to everything else:

* ``FINISHED``: nothing more happens unless a person clears or marks the TI; downstream counters have counted it.
* ``HOLDING``: a dispatch exists, so limits are held and an epoch is current.
* the rest waits: for upstreams (``none``), for selection (``scheduled``), or for a timer or trigger (``up_for_*``, ``deferred``).

The diagram in ``docs/reference/states.md`` is generated from the two tables below, and tests compare the database enums with them.
"""

from __future__ import annotations

from enum import StrEnum

from evenflow.errors import IllegalMove


class TaskState(StrEnum):
    NONE = "none"
    SCHEDULED = "scheduled"
    QUEUED = "queued"
    RUNNING = "running"
    DEFERRED = "deferred"
    UP_FOR_RETRY = "up_for_retry"
    UP_FOR_RESCHEDULE = "up_for_reschedule"
    SUCCESS = "success"
    FAILED = "failed"
    SKIPPED = "skipped"
    UPSTREAM_FAILED = "upstream_failed"
    REMOVED = "removed"


class TaskEvent(StrEnum):
    READY = "ready"  # the trigger rule is satisfied, or a retry or reschedule is due
    GRANT = "grant"  # selection started it: holds taken, dispatch written
    START = "start"  # a worker runs it
    SUCCEED = "succeed"
    FAIL = "fail"
    RETRY = "retry"  # failed with tries left
    SKIP = "skip"
    UPSTREAM_FAIL = "upstream_fail"  # the trigger rule can no longer be satisfied
    REQUEUE = "requeue"  # the dispatch is void (cannot start, lost before its start): sent again under a fresh epoch
    ELSEWHERE = "elsewhere"  # no worker has claimed it in time: it moves to the task's other queue
    OVERDUE = "overdue"  # no worker has claimed it in time: people are told, nothing else happens
    DEFER = "defer"
    RESUME = "resume"  # direct: back to the dispatch queue, holds kept
    ORDINARY_RESUME = "ordinary_resume"  # back to its lane
    RESCHEDULE = "reschedule"
    CANCEL = "cancel"  # its run was cancelled after it had begun
    WITHDRAW = "withdraw"  # its run was cancelled before it began
    CLEAR = "clear"
    REMOVE = "remove"
    MARK_SUCCESS = "mark_success"  # a person says how it ended
    MARK_FAILED = "mark_failed"
    MARK_SKIPPED = "mark_skipped"


class Ender(StrEnum):
    """What has ended a task instance, where that was neither a try nor a trigger rule."""

    CANCEL = "cancel"  # of its run; also what did not run because of that
    BRANCH = "branch"
    NOTHING = "nothing"  # there was none to map over
    MARK = "mark"  # a person said so


class RunState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"


class RunEvent(StrEnum):
    START = "start"
    SUCCEED = "succeed"
    FAIL = "fail"
    CANCEL = "cancel"
    CLEAR = "clear"
    MARK_SUCCESS = "mark_success"  # a person says how it ended
    MARK_FAILED = "mark_failed"


_T, _E = TaskState, TaskEvent

# What an exit report can make of a TI with a dispatch.
_EXITS: dict[TaskEvent, TaskState] = {
    _E.SUCCEED: _T.SUCCESS,
    _E.FAIL: _T.FAILED,
    _E.RETRY: _T.UP_FOR_RETRY,
    _E.SKIP: _T.SKIPPED,
    _E.DEFER: _T.DEFERRED,
    _E.RESCHEDULE: _T.UP_FOR_RESCHEDULE,
    _E.CANCEL: _T.FAILED,
    _E.REQUEUE: _T.QUEUED,
}
# What a person can do with a TI; to a TI with a dispatch it happens when its process has ended. REMOVE: when a mapped task is
# cleared as a whole, its instances go, because it expands anew.
_MARKED: dict[TaskEvent, TaskState] = {_E.MARK_SUCCESS: _T.SUCCESS, _E.MARK_FAILED: _T.FAILED, _E.MARK_SKIPPED: _T.SKIPPED}
_OPERATED: dict[TaskEvent, TaskState] = {**_MARKED, _E.CLEAR: _T.NONE, _E.REMOVE: _T.REMOVED}

TASK_MOVES: dict[TaskState, dict[TaskEvent, TaskState]] = {
    _T.NONE: {
        _E.READY: _T.SCHEDULED,
        _E.GRANT: _T.QUEUED,
        _E.SKIP: _T.SKIPPED,
        _E.UPSTREAM_FAIL: _T.UPSTREAM_FAILED,
        _E.SUCCEED: _T.SUCCESS,  # a task without code
        _E.FAIL: _T.FAILED,  # it cannot become ready, e.g. it maps over something without a length
        _E.WITHDRAW: _T.SKIPPED,
        _E.REMOVE: _T.REMOVED,
        **_MARKED,
    },
    _T.SCHEDULED: {_E.GRANT: _T.QUEUED, _E.WITHDRAW: _T.SKIPPED, _E.CANCEL: _T.FAILED, **_OPERATED},
    _T.QUEUED: {
        _E.START: _T.RUNNING,
        _E.WITHDRAW: _T.SKIPPED,
        _E.ELSEWHERE: _T.SCHEDULED,
        _E.OVERDUE: _T.QUEUED,
        **_EXITS,
        **_OPERATED,
    },
    _T.RUNNING: {**_EXITS, **_OPERATED},
    _T.DEFERRED: {
        _E.RESUME: _T.QUEUED,
        _E.ORDINARY_RESUME: _T.SCHEDULED,
        _E.FAIL: _T.FAILED,
        _E.RETRY: _T.UP_FOR_RETRY,
        _E.CANCEL: _T.FAILED,
        **_OPERATED,
    },
    _T.UP_FOR_RETRY: {_E.READY: _T.SCHEDULED, _E.GRANT: _T.QUEUED, _E.CANCEL: _T.FAILED, **_OPERATED},
    _T.UP_FOR_RESCHEDULE: {_E.READY: _T.SCHEDULED, _E.GRANT: _T.QUEUED, _E.CANCEL: _T.FAILED, **_OPERATED},
    _T.SUCCESS: dict(_OPERATED),
    _T.FAILED: dict(_OPERATED),
    _T.SKIPPED: dict(_OPERATED),
    _T.UPSTREAM_FAILED: dict(_OPERATED),
    _T.REMOVED: {_E.CLEAR: _T.NONE},
}

RUN_MOVES: dict[RunState, dict[RunEvent, RunState]] = {
    RunState.QUEUED: {RunEvent.START: RunState.RUNNING, RunEvent.CANCEL: RunState.FAILED, RunEvent.FAIL: RunState.FAILED},
    RunState.RUNNING: {
        RunEvent.SUCCEED: RunState.SUCCESS,
        RunEvent.FAIL: RunState.FAILED,
        RunEvent.CANCEL: RunState.FAILED,
    },
    RunState.SUCCESS: {RunEvent.CLEAR: RunState.QUEUED, RunEvent.MARK_FAILED: RunState.FAILED},
    RunState.FAILED: {RunEvent.CLEAR: RunState.QUEUED, RunEvent.MARK_SUCCESS: RunState.SUCCESS},
}

MARKS: dict[TaskState, TaskEvent] = {state: event for event, state in _MARKED.items()}

FINISHED = frozenset({_T.SUCCESS, _T.FAILED, _T.SKIPPED, _T.UPSTREAM_FAILED, _T.REMOVED})
HOLDING = frozenset({_T.QUEUED, _T.RUNNING})
RUN_FINISHED = frozenset({RunState.SUCCESS, RunState.FAILED})

_WORDS = {
    "none": "waiting",
    "up_for_retry": "retrying",
    "upstream_failed": "upstream failed",
    "up_for_reschedule": "rescheduled",
}


def in_state(state: str) -> str:
    """Returns the words for being in a state, also for a state of a newer release."""
    return _WORDS.get(state, state)


def move(state: TaskState, event: TaskEvent) -> TaskState:
    """Returns the state after ``event`` of a TI in ``state``. Raises :class:`IllegalMove` when the table has no such move."""
    try:
        return TASK_MOVES[state][event]
    except KeyError:
        raise IllegalMove("task instance", state, event, sorted(TASK_MOVES[state])) from None


def move_run(state: RunState, event: RunEvent) -> RunState:
    """Works like :func:`move`, for runs."""
    try:
        return RUN_MOVES[state][event]
    except KeyError:
        raise IllegalMove("run", state, event, sorted(RUN_MOVES[state])) from None


def sources(event: TaskEvent) -> frozenset[TaskState]:
    """Returns the states that ``event`` changes."""
    return frozenset(state for state, moves in TASK_MOVES.items() if moves.get(event, state) is not state)
