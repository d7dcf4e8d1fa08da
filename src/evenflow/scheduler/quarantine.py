"""Runs that cannot be handled are set aside: nothing is applied to them and none of their tasks starts, until a person decides
otherwise.

Their running tries continue and report. Reports about such a run wait in the inbox, marked, so that no look at the inbox meets them
again; the limits that an ended try held are released at once. A person who ends such a run has it tried once more in the ordinary
way. If that fails too, the run is ended by force: by statements that need to know nothing of its DAG, so that teardowns and
callbacks do not run.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import psycopg

import evenflow
from evenflow.core.operations import cancel_reason
from evenflow.core.states import HOLDING, TaskEvent, move, sources
from evenflow.errors import EvenflowError
from evenflow.scheduler import observations as seen
from evenflow.store.db.failures import is_outage
from evenflow.store.db.notify import DISPATCH, INBOX
from evenflow.store.db.rows import Conn, savepoint
from evenflow.store.scheduling import inbox, quarantine, runs, selection, tasks
from evenflow.telemetry.observing import observe

PACKAGE = Path(evenflow.__file__).parent

_WITHDRAWN = sources(TaskEvent.WITHDRAW) - HOLDING  # it is unknown whether a queued try has begun
_ENDS = [(state, TaskEvent.WITHDRAW, move(state, TaskEvent.WITHDRAW)) for state in _WITHDRAWN] + [
    (state, TaskEvent.CANCEL, move(state, TaskEvent.CANCEL)) for state in sources(TaskEvent.CANCEL) - _WITHDRAWN
]


def may_be_poison(error: Exception) -> bool:
    """Whether an exception may be about what one run, DAG or row says, and not about the database or the connection to it."""
    if isinstance(error, psycopg.InterfaceError) or is_outage(error):
        return False  # a lost connection, a deadlock, a full disk, a statement that took too long
    return not (isinstance(error, psycopg.Error) and (error.sqlstate or "").startswith("25"))  # timeouts of transactions


def pass_by(conn: Conn, locked: list[inbox.LockedRun], *, lead: bool) -> list[inbox.LockedRun]:
    """Returns the locked runs about which may be decided. Reports about the others wait. The holder of the executor's lock takes up
    the runs that a person wants to end in its next transaction, and continues with those that are being ended by force.
    """
    aside = [row for row in locked if row.in_quarantine]
    if not aside:
        return locked
    doomed = {row.run_key for row in aside if row.cancelled_by is not None}
    waiting = [row.run_key for row in aside if row.run_key not in doomed]
    wanted: Collection[int] = ()
    if lead:
        for row in aside:
            if row.run_key in doomed:
                end_by_force(conn, row.run_key, str(row.cancelled_by), "it was in quarantine")
        wanted = quarantine.find_cancels(conn, waiting) if waiting else wanted
    if waiting:
        quarantine.hold_reports(conn, waiting)
    if wanted:
        quarantine.release_runs(conn, wanted, "scheduler")
    inbox.notify(conn, INBOX)  # of the released limits
    return [row for row in locked if not row.in_quarantine]


def set_aside(conn: Conn, run_keys: Collection[int], error: Exception) -> None:
    """Sets runs aside, in a transaction of its own. Runs that a person wants to end are ended instead."""
    reason = describe(error)
    with conn.transaction():
        quarantine.lock_executor(conn)
        quarantine.put_runs(conn, run_keys, reason)
        for run_key, actor in quarantine.find_cancels(conn, run_keys).items():
            end_by_force(conn, run_key, actor, reason)
        inbox.notify(conn, INBOX)
    for run_key in run_keys:
        observe(seen.run_quarantined(run_key, reason, error))


def set_one_aside(conn: Conn, kind: str, name: str, error: Exception) -> None:
    """What a DAG (``schedule``, ``assets``) or a ``backfill`` would have made, in the caller's transaction."""
    quarantine.put_one(conn, kind, name, describe(error))
    observe(seen.maker_quarantined(kind, name, describe(error), error))


def end_by_force(conn: Conn, run_key: int, actor: str, reason: str) -> None:
    """Ends a run in quarantine as far as its processes have ended; the others are killed, and their reports bring us here again.
    Needs the executor's lock. If even this fails, the run stays as it is, and is not looked at until a person asks again.
    """
    try:
        with savepoint(conn):
            _end(conn, run_key, actor, reason)
    except Exception as error:
        if not may_be_poison(error):
            raise
        observe(seen.run_not_ended(run_key, error))
        quarantine.hold_reports(conn, [run_key], cancels=True)


def _end(conn: Conn, run_key: int, actor: str, reason: str) -> None:
    why = f"the run could not be handled: {reason}"
    of_instances, of_run = f"{cancel_reason(actor)}; {why}", f"cancelled by {actor}; {why}"
    if limits := [row[0] for row in selection.delete_run_lanes(conn, run_key).all()]:
        selection.insert_wakes(conn, dict.fromkeys(limits, 0), {}, inbox.begin_turn(conn).all()[0].now_s)
    left = quarantine.end_tries(conn, run_key)
    quarantine.end_instances(conn, run_key, _ENDS, reason=of_instances, actor=actor)
    tasks.skip_virtual(conn, run_key, reason=of_instances)
    if left:
        runs.mark_cancelled(conn, run_key, actor)
        quarantine.hold_reports(conn, [run_key], cancels=True)
        inbox.notify(conn, DISPATCH)
    else:
        quarantine.end_run(conn, run_key, reason=of_run, actor=actor)


def describe(error: Exception) -> str:
    """Class and place, and the text of errors that Evenflow raises itself: those hold no values. For people, and for tables."""
    kind = type(error).__name__
    if isinstance(error, EvenflowError):
        kind = f"{kind}: {str(error).rstrip('.')}"
    elif isinstance(error, psycopg.Error) and error.sqlstate:
        kind = f"{kind} (SQLSTATE {error.sqlstate})"
    traceback, place = error.__traceback__, ""
    while traceback is not None:
        file = Path(traceback.tb_frame.f_code.co_filename)
        if file.is_relative_to(PACKAGE):
            place = f" in {file.relative_to(PACKAGE)}, line {traceback.tb_lineno}"
        traceback = traceback.tb_next
    return kind + place
