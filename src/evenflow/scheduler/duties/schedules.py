"""Runs that the scheduler creates by itself: when their DAG is due, and those of backfills in order, as many at a time as each
allows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from time import monotonic

from evenflow.core.forecast import Forecast, TimetableRun
from evenflow.core.limits import PLANNING_S, SWEEP_S
from evenflow.core.model import DagSpec
from evenflow.core.spec.params import resolve_params
from evenflow.core.timetable import Past, due_runs
from evenflow.killpoints import KillPoint, reached
from evenflow.scheduler.quarantine import may_be_poison, set_one_aside
from evenflow.store.db.notify import INBOX
from evenflow.store.db.rows import Conn
from evenflow.store.scheduling import inbox, schedules

DAGS_PER_TURN = 100  # one transaction's worth; the next follows at once
RUNS_WAITING = 16  # scheduled runs of a DAG that may be queued: a catch-up over years fills no table before it can run
CATCH_UP_S = (
    0.005  # a DAG that has filled its room is looked at again so soon; while nothing has begun, after twice the time each time
)


class Schedules:
    """The duty to create scheduled runs. A *look* at all DAGs that are due continues from transaction to transaction, and each DAG
    fills its room once in a look: DAGs that catch up delay no other's next run by more than one transaction.
    """

    def __init__(self) -> None:
        self._served: list[str] = []  # in this look, and still due
        self._pause_s: float | None = None  # until room is looked for, while there is a DAG that has filled its own

    def perform(self, conn: Conn) -> float | None:
        """One transaction; answers in how many seconds there may be more to do, if before the next sweep."""
        more, still_due = create_scheduled(conn, self._served)
        self._served += still_due
        if more:
            return 0.0
        if self._served:
            self._pause_s = CATCH_UP_S
        elif self._pause_s is not None:
            self._pause_s = 2 * self._pause_s if self._pause_s < SWEEP_S else None
        self._served = []
        return self._pause_s


def create_scheduled(conn: Conn, served: Sequence[str] = ()) -> tuple[bool, list[str]]:
    """Creates the runs that are due, of DAGs that are not ``served``, and says when the next ones are. Returns whether there may be
    more DAGs, and which have filled their room and are still due. A DAG whose schedule cannot be followed is set aside until its
    next version, and no other suffers.
    """
    with conn.transaction():
        turn = schedules.take_due_dags(conn, limit=DAGS_PER_TURN, waiting=RUNS_WAITING, served=served)
        try:
            with conn.transaction():
                taken, still_due = _create(conn, turn)
        except Exception as error:
            if not may_be_poison(error):
                raise
            results = [_create_or_set_aside(conn, dag) for dag in _in_time(turn)]
            taken, still_due = len(results), [dag_id for result in results for dag_id in result]
    return taken < len(turn) or taken == DAGS_PER_TURN, still_due


def _in_time(turn: Sequence[schedules.DueDag]) -> Iterator[schedules.DueDag]:
    """As many of them as can be planned while the server waits; the others stay due."""
    end = monotonic() + PLANNING_S
    for dag in turn:
        yield dag
        if monotonic() >= end:
            return


def _create(conn: Conn, turn: Sequence[schedules.DueDag]) -> tuple[int, list[str]]:
    """How many of them it took, and which are due still."""
    created: list[schedules.ScheduledRun] = []
    following = [_plan(dag, created) for dag in _in_time(turn)]
    if created and schedules.insert_runs(conn, created):
        inbox.notify(conn, INBOX)
    if created:
        reached(KillPoint.SCHEDULE_INSERTED)
    if following:
        schedules.set_next(conn, following)
    due = [dag.dag_id for dag, run in zip(turn, following, strict=False) if run.run_at is not None and run.run_at <= dag.now]
    return len(following), due


def _create_or_set_aside(conn: Conn, dag: schedules.DueDag) -> list[str]:
    try:
        with conn.transaction():
            return _create(conn, [dag])[1]
    except Exception as error:
        if not may_be_poison(error):
            raise
        set_one_aside(conn, "schedule", dag.dag_id, error)
        schedules.set_next(conn, [schedules.ScheduleUpdate(dag.dag_id)])
        return []


def _plan(dag: schedules.DueDag, created: list[schedules.ScheduledRun]) -> schedules.ScheduleUpdate:
    """Adds the runs of ``dag`` that are due, as many as may wait; returns how its schedule continues."""
    spec = DagSpec.from_json(dag.spec)
    params = json.dumps(resolve_params(spec.params, {}))
    forecast = Forecast.read(dag.forecast) if dag.forecast else None
    past = Past(dag.last_logical, dag.last_end, dag.first_seen_at, forecast or Forecast())
    runs, following = due_runs(spec, past, dag.now, dag.room)
    created += [_scheduled(dag, run, params) for run in runs]
    next_run = schedules.ScheduleUpdate(dag.dag_id, following and following.run_after, following and following.logical_date)
    if runs:
        next_run = next_run._replace(last_logical=runs[-1].logical_date, last_end=runs[-1].data_interval_end)
    wants = forecast is not None and forecast.is_low(next_run.last_logical or dag.last_logical, spec.catchup, dag.now)
    return next_run._replace(wants_forecast=wants)


def _scheduled(dag: schedules.DueDag, run: TimetableRun, params: str) -> schedules.ScheduledRun:
    run_id = f"scheduled__{run.logical_date.isoformat()}"
    return schedules.ScheduledRun(dag.dag_id, run_id, dag.version_key, params, *run)


BACKFILLS_PER_TURN = 100  # one transaction's worth; the next comes with the next sweep


def make_backfill_runs(conn: Conn) -> None:
    """Makes the runs for which there is room, and ends the backfills that are complete. A backfill whose runs cannot be made is set
    aside, and no other suffers.
    """
    with conn.transaction():
        made = 0
        for found in schedules.take_open_backfills(conn, limit=BACKFILLS_PER_TURN):
            try:
                with conn.transaction():
                    made += schedules.make_backfill_runs(conn, found)
            except Exception as error:
                if not may_be_poison(error):
                    raise
                set_one_aside(conn, "backfill", str(found.backfill_id), error)
        if made:
            inbox.notify(conn, INBOX)
        else:
            schedules.end_finished_backfills(conn)
