"""The steps between which a process may die: each is named once here, and passed at its place in the code.

Beside each is what must hold when a process dies there. The fault suite (``tests/chaos``) kills real processes at every one of
them. No setting enables that: :func:`reached` does nothing unless code outside of this package has called :func:`watch` in this
very process, which only the launcher of the tests does. Passing a point costs some 0.2 us.

A NOTIFY travels with its commit, so there is no point between the two.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class KillPoint(StrEnum):
    """``kind-step``: the kind of service that passes it, and its last step. ``holds``: what is true after a death there."""

    holds: str

    def __new__(cls, name: str, holds: str) -> KillPoint:
        point = str.__new__(cls, name)
        point._value_ = name
        point.holds = holds
        return point

    TURN_LOCKED = "scheduler-locked", "Runs are locked, nothing is taken: all rolls back, another scheduler takes the same runs."
    TURN_APPLIED = "scheduler-applied", "Reports and timers are taken, moves decided: all rolls back, the reports are there again."
    RUNS_CREATED = "scheduler-created", "A queued run has its rows: all rolls back, the run is queued again."
    TURN_SELECTED = "scheduler-selected", "Selection has chosen who starts: nothing was written, all rolls back."
    TURN_WRITTEN = "scheduler-written", "All is sent, except for the commit: all rolls back."
    TURN_COMMITTED = "scheduler-committed", "The commit is done, and who has something to do is woken: nothing is lost."
    LEASES_LAPSED = "scheduler-lapsed", "A service is declared lost, its tries are not yet: the sweep of any scheduler does it."
    LOSSES_REPORTED = "scheduler-losses", "Lost tries are reported, nobody is woken: the sweep finds the reports."
    SCHEDULE_INSERTED = "scheduler-scheduled", "Due runs are inserted, the next date is not set: both roll back."
    CLAIM_ASKED = "api-asked", "A claim is about to be made: the worker asks again with the same key, elsewhere."
    CLAIM_COMMITTED = "api-claimed", "Tries are the worker's, their answer is not made: the same key gets the same tries."
    CLAIM_ANSWERED = "api-answered", "The answer is made, not sent: as before; a beat would find what the worker does not list."
    REPORTS_RECEIVED = "api-received", "Reports have arrived, none is stored: the worker keeps and repeats them."
    REPORTS_STORED = "api-stored", "Reports are stored, not acknowledged: they come twice, and the second is stale."
    TRIGGERS_CLAIMED = "api-triggers", "Triggers are the triggerer's, their answer is not made: the same key gets the same."
    EVENTS_STORED = "api-events", "What became of triggers is stored, not acknowledged: it comes twice, and the second is stale."
    BEAT_STORED = "api-beat", "A beat counts, its answer is lost: the worker counts from the beat that was answered."
    LOGS_STORED = "api-logs", "Lines are stored, not acknowledged: they come again and are recognised by their offset."
    VERSION_STORED = "api-version", "A DAG's version is stored, not acknowledged: its delivery is repeated and finds it."
    CLAIM_HEARD = "worker-heard", "Tries are assigned to a worker that has begun none: its lease lapses, they are sent again."
    TRY_FORKING = "worker-forking", "A try is about to get its process: its lease lapses, it is sent again."
    TRY_FORKED = "worker-forked", "A try has its process: that dies with the worker, the try is sent again."
    START_REPORTING = "worker-starting", "A start is about to be reported: the try is lost like any other."
    TRY_ENDED = "worker-ended", "A try has ended, its exit is not queued: nobody will know, so it is sent again."
    RESULT_STORED = "worker-result", "A large result is stored, its exit is not reported: it is garbage of a lost try."
    EXIT_REPORTING = "worker-exiting", "An exit is about to be sent: as if the try had not ended."
    EXIT_ACKNOWLEDGED = "worker-acknowledged", "An exit is stored, the worker does not note it: the try has ended, nothing is lost."
    TRIGGERS_HEARD = (
        "triggerer-heard",
        "Triggers are assigned to a triggerer that has begun none: its lease lapses, others get them.",
    )
    TRIGGERS_BEGUN = "triggerer-begun", "Triggers run in its hosts: these die with it, others begin the triggers anew."
    TRIGGER_FIRED = "triggerer-fired", "An event has happened, it is not queued: the trigger is begun elsewhere, and fires there."
    EVENTS_ACKNOWLEDGED = "triggerer-acknowledged", "Events are stored, the triggerer does not note it: nothing is lost."
    POD_MADE = "launcher-pod", "A pod is made, its secret is not: it waits, and any launcher makes it."
    POD_EQUIPPED = "launcher-equipped", "A pod has all that it needs: it claims its try, whoever has made it."
    POD_TOLD = "launcher-told", "The end of a pod is told, the pod is there: the next look of any launcher takes it away."
    FILES_LEASED = "processor-leased", "Files are leased to a processor that is dead: others take them when its lease lapses."
    FILE_LOADED = "processor-loaded", "A file is loaded, not delivered: as before."
    FILE_DELIVERED = "processor-delivered", "A file is delivered and not noted: nothing is left to do."
    STEP_BEGUN = "autoscaler-begun", "A step of a plan is written, nothing of it is done: the next loop does it."
    STEP_DECIDED = "autoscaler-decided", "Who goes is written, its target does not know: the next loop looks again, and tells it."
    STEP_TOLD = "autoscaler-told", "A target is told a number, the fleet has the one before: the next loop finds it, and writes it."
    STEP_TAKEN = "autoscaler-taken", "A step is done, its row does not say so: the next loop does it again, to no effect."
    STEP_NOTED = "autoscaler-noted", "A step is done and noted: the next loop goes on with the one after it."


_watcher: Callable[[KillPoint], None] | None = None


def reached(point: KillPoint) -> None:
    """Called at ``point`` in the code path."""
    if _watcher is not None:
        _watcher(point)


def watch(watcher: Callable[[KillPoint], None] | None) -> None:
    """From now on ``watcher`` is called with every point that this process passes, and may end the process there. For tests."""
    global _watcher
    _watcher = watcher
