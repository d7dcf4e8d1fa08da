"""Runs that have ended, in bulk, of DAGs that are stored: what lists and the grid of a DAG read of a long history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from evenflow.store.scheduling import partitions

DAYS = 14  # so far back they go, evenly
FAILED = 50  # each so manieth run has failed, by the last of its tasks


def add_partitions(conn: psycopg.Connection[Any]) -> None:
    """Of the days in which the runs are, as schedulers have made them by then."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for days in range(DAYS + 1):
        partitions.attach(conn, today - timedelta(days=days))


def add_finished_runs(conn: psycopg.Connection[Any], dag_ids: list[str], runs: int) -> int:
    """So many runs of each DAG with all tasks of its newest version, none of them mapped: two events a task, one a run. Answers how
    many tasks that are.
    """
    conn.execute("drop table if exists finished")
    conn.execute(
        "create temporary table finished as select d.dag_id, d.version_key, i,"
        " now() - make_interval(days => %s) * (i::float8 / %s) - interval '1 hour' as begun, nextval('run_seq') & 1048575 as tail"
        " from dag d, generate_series(0, %s) i where d.dag_id = any(%s) order by i desc",
        [DAYS, max(1, runs), runs - 1, dag_ids],
    )
    conn.execute("alter table finished add run_key bigint")
    conn.execute("update finished set run_key = ((extract(epoch from begun) * 1000)::bigint << 20) | tail")
    conn.execute("analyze finished")
    conn.execute(
        "insert into dag_run (run_key, dag_id, run_id, version_key, state, run_type, logical_date, created_at,"
        " started_at, ended_at, reason)"
        " select run_key, dag_id, 'scheduled__' || i, version_key,"
        " case when i %% %s = 1 then 'failed' else 'success' end::run_state, 'scheduled',"
        " begun, begun, begun, begun + make_interval(secs => 60 + i %% 240),"
        " case when i %% %s = 1 then 'The last task has failed.' end"
        " from finished",
        [FAILED, FAILED],
    )
    added = conn.execute(
        "insert into task_instance (run_key, task_index, state, try_number, epoch, queued_at, started_at, ended_at, reason)"
        " select f.run_key, t.task_index, case when is_bad then 'failed' else 'success' end::task_state, 1, 1,"
        " begun, begun + interval '1 second', begun + interval '40 seconds', case when is_bad then 'ValueError: no such order' end"
        " from finished f join (select *, count(*) over (partition by version_key) as tasks from task) t using (version_key),"
        " lateral (select f.i %% %s = 1 and t.task_index = t.tasks - 1 as is_bad) b",
        [FAILED],
    ).rowcount
    conn.execute(
        "insert into task_event (run_key, task_index, map_index, at, epoch, try_number, event, state)"
        " select run_key, task_index, map_index, at, 1, 1, event, t.state"
        " from finished f join task_instance t using (run_key),"
        " lateral (values ('start', t.started_at), ('end', t.ended_at)) e (event, at)"
    )
    conn.execute(
        "insert into run_event (run_key, at, event, state, actor)"
        " select run_key, r.ended_at, 'end', r.state, 'scheduler' from finished join dag_run r using (run_key)"
    )
    conn.execute("drop table finished")
    return added
