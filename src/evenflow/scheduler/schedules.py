"""Scheduled runs: created when their DAG is due."""

from __future__ import annotations

import logging
from datetime import datetime

from evenflow.core.model import DagSpec
from evenflow.core.params import resolve_params
from evenflow.core.timetable import next_run
from evenflow.errors import EvenflowError
from evenflow.store import inbox, runs
from evenflow.store.notify import INBOX
from evenflow.store.rows import Conn

DAGS_PER_TURN = 100  # one transaction's worth; the next follows at once

log = logging.getLogger(__name__)


def create_scheduled(conn: Conn) -> bool:
    """Creates the runs that are due and says when the next ones are. Whether there may be more."""
    with conn.transaction():
        turn = runs.take_due_dags(conn, limit=DAGS_PER_TURN)
        created = [_create(conn, dag) for dag in turn]
        if any(created):
            inbox.notify(conn, INBOX)
    return len(turn) == DAGS_PER_TURN


def _create(conn: Conn, dag: runs.DueDag) -> bool:
    spec = DagSpec.from_json(dag.spec)
    bounds = (_instant(spec.start_date), _instant(spec.end_date))
    run = next_run(spec.schedule, *bounds, dag.last_logical, spec.catchup, dag.now)
    created = False
    if run is not None and run.run_after <= dag.now:
        created = _insert(conn, dag, spec, run.logical_date, run.data_interval_end, run.run_after)
        run = next_run(spec.schedule, *bounds, run.logical_date, spec.catchup, dag.now)
    runs.set_next(conn, dag.dag_id, run and run.run_after, run and run.logical_date)
    return created


def _insert(conn: Conn, dag: runs.DueDag, spec: DagSpec, logical: datetime, end: datetime, run_after: datetime) -> bool:
    try:
        params = resolve_params(spec.params, {})
    except EvenflowError as error:
        log.error("the scheduled run of DAG %s for %s was not created: %s", dag.dag_id, logical.isoformat(), error)
        return False
    run_id = f"scheduled__{logical.isoformat()}"
    return runs.insert_scheduled(
        conn, runs.ScheduledRun(dag.dag_id, run_id, dag.version_key, params, logical, logical, end, run_after)
    )


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
