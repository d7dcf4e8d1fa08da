"""Scheduled runs: created when their DAG is due."""

from __future__ import annotations

import json
from collections.abc import Sequence

from evenflow.core.model import DagSpec
from evenflow.core.params import resolve_params
from evenflow.core.timetable import Past, Run, due_runs
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
        schedules.set_next(conn, [schedules.NextRun(dag.dag_id)])


def _plan(dag: schedules.DueDag, created: list[schedules.ScheduledRun]) -> schedules.NextRun:
    """Adds the runs of ``dag`` that are due, as many as may wait; answers how it goes on."""
    spec = DagSpec.from_json(dag.spec)
    params = json.dumps(resolve_params(spec.params, {}))
    runs, following = due_runs(spec, Past(dag.last_logical, dag.last_end, dag.first_seen_at), dag.now, dag.room)
    created += [_scheduled(dag, run, params) for run in runs]
    next_run = schedules.NextRun(dag.dag_id, following and following.run_after, following and following.logical_date)
    return next_run._replace(last_logical=runs[-1].logical_date, last_end=runs[-1].data_interval_end) if runs else next_run


def _scheduled(dag: schedules.DueDag, run: Run, params: str) -> schedules.ScheduledRun:
    run_id = f"scheduled__{run.logical_date.isoformat()}"
    return schedules.ScheduledRun(dag.dag_id, run_id, dag.version_key, params, *run)
