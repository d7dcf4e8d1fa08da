"""Scheduled runs: created when their DAG is due."""

from __future__ import annotations

import json
from collections.abc import Sequence

from evenflow.core.model import DagSpec
from evenflow.core.params import resolve_params
from evenflow.core.timetable import Past, Run, next_of
from evenflow.killpoints import KillPoint, reached
from evenflow.scheduler.quarantine import may_be_poison, set_one_aside
from evenflow.store import inbox, schedules
from evenflow.store.notify import INBOX
from evenflow.store.rows import Conn

DAGS_PER_TURN = 100  # one transaction's worth; the next follows at once
RUNS_WAITING = 16  # scheduled runs of a DAG that may be queued: a catch-up over years fills no table before it can run


def create_scheduled(conn: Conn) -> bool:
    """Creates the runs that are due and says when the next ones are. Whether there may be more. A DAG whose schedule cannot be
    followed is set aside until its next version, and no other suffers.
    """
    with conn.transaction():
        turn = schedules.take_due_dags(conn, limit=DAGS_PER_TURN, waiting=RUNS_WAITING)
        try:
            with conn.transaction():
                _create(conn, turn)
        except Exception as error:
            if not may_be_poison(error):
                raise
            for dag in turn:
                _create_or_set_aside(conn, dag)
    return len(turn) == DAGS_PER_TURN


def _create(conn: Conn, turn: Sequence[schedules.DueDag]) -> None:
    created: list[schedules.ScheduledRun] = []
    following = [_plan(dag, created) for dag in turn]
    if created and schedules.insert_runs(conn, created):
        inbox.notify(conn, INBOX)
    if created:
        reached(KillPoint.SCHEDULE_INSERTED)
    if following:
        schedules.set_next(conn, following)


def _create_or_set_aside(conn: Conn, dag: schedules.DueDag) -> None:
    try:
        with conn.transaction():
            _create(conn, [dag])
    except Exception as error:
        if not may_be_poison(error):
            raise
        set_one_aside(conn, "schedule", dag.dag_id, error)
        schedules.set_next(conn, [schedules.NextRun(dag.dag_id, None, None)])


def _plan(dag: schedules.DueDag, created: list[schedules.ScheduledRun]) -> schedules.NextRun:
    """Adds the runs of ``dag`` that are due, as many as may wait; answers the one after them."""
    spec = DagSpec.from_json(dag.spec)
    params = json.dumps(resolve_params(spec.params, {}))
    past = Past(dag.last_logical, dag.last_end, dag.first_seen_at)
    run = next_of(spec, past, dag.now)
    room = 1 if spec.schedule.kind == "continuous" else dag.room
    while run is not None and run.run_after <= dag.now and room > 0:
        created.append(_scheduled(dag, run, params))
        past, room = past._replace(logical_date=run.logical_date, interval_end=run.data_interval_end), room - 1
        run = next_of(spec, past, dag.now)
    return schedules.NextRun(dag.dag_id, run and run.run_after, run and run.logical_date)


def _scheduled(dag: schedules.DueDag, run: Run, params: str) -> schedules.ScheduledRun:
    run_id = f"scheduled__{run.logical_date.isoformat()}"
    return schedules.ScheduledRun(dag.dag_id, run_id, dag.version_key, params, *run)
