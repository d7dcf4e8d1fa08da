"""Backlogs of any size in seconds: the scheduler makes one run, SQL makes the others just like it.

Whatever columns the tables have, a copy has those of its template, but for the keys that tell runs apart. A test compares the
result with what the scheduler makes of as many runs.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

Conn = psycopg.Connection[Any]

BLOCK = 1_000  # numbers of epoch_seq and lane_seq that one nextval stands for

# Columns of a copy that differ from the template's (t): c is what is known of the copy, k what is known of the template.
_RUN = {"run_key": "c.run_key"}
_TASK = {**_RUN, "epoch": "case when t.epoch > 0 then c.epoch else 0 end"}
_OF_RUN: dict[str, dict[str, str]] = {
    "dag_run": {**_RUN, "dag_id": "c.dag_id", "run_id": "c.run_id", "version_key": "c.version_key"},
    "task_instance": _TASK,
    "upstream_counter": _RUN,
    "mapped_task": _RUN,
    "concurrency_limit": {**_RUN, "limit_id": "c.limit_id"},
    "lane": {
        **_RUN,
        "lane_id": "c.lane_id",
        "priority": "coalesce(c.priority, t.priority)",
        "order_key": "substring(t.order_key for 4) || int4send(2147483647 - coalesce(c.priority, t.priority))"
        " || substring(t.order_key from 9 for 8) || set_byte(int8send(c.lane_id), 0, 128)",  # as core/selection/order.py has it
        "locals": "array_replace(t.locals, k.limit_id, c.limit_id)",
        "parked_on": "case t.parked_on when k.limit_id then c.limit_id else t.parked_on end",
    },
    "dispatch": {
        **_TASK,
        "priority": "coalesce(c.priority, t.priority)",
        "holds": "array_replace(t.holds, k.limit_id, c.limit_id)",
    },
    "task_event": _TASK,
    "run_event": _RUN,
}
_SPEC = """
    t.spec || jsonb_build_object('dag_id', c.dag_id, 'tasks', (
        select jsonb_agg(task || jsonb_strip_nulls(jsonb_build_object('priority_weight', c.priority)) order by n)
        from jsonb_array_elements(t.spec -> 'tasks') with ordinality as x (task, n)))"""


def copy_run(conn: Conn, run_key: int, copies: int, *, prefix: str) -> None:
    """``copies`` more runs of the same DAG, in the state in which run ``run_key`` is; ``prefix`` and 2, 3, ... are their names.

    The run has at most one limit of its own, one lane and one dispatch.
    """
    _number(conn, run_key, copies, dag_id="k.dag_id", run_id=f"'{prefix}' || i + 1", version_key="k.version_key", priority="null")
    _copy(conn, run_key)


def copy_dag(conn: Conn, run_key: int, copies: int, *, group: str) -> None:
    """``copies`` more DAGs ``group``_001, ``group``_002, ... with one run each, in the state in which run ``run_key`` is. Their
    priority is 100 + number modulo 1000.

    The run has at most one limit of its own, one lane and one dispatch. A copied version has a hash that says only that it is one.
    """
    _number(
        conn,
        run_key,
        copies,
        dag_id=_named(group),
        run_id="k.run_id",
        version_key="nextval(pg_get_serial_sequence('dag_version', 'version_key'))",
        priority="100 + i % 1000",
    )
    _copy_versions(conn)
    _copy(conn, run_key)


def add_dags(conn: Conn, dag_id: str, copies: int, *, group: str) -> None:
    """``copies`` more DAGs ``group``_001, ``group``_002, ... that are like this one, which has neither limits nor runs."""
    conn.execute("drop table if exists k, c")
    conn.execute("create temporary table k as select dag_id, version_key from dag where dag_id = %s", [dag_id])
    conn.execute(
        f"create temporary table c as select i, {_named(group)} as dag_id, null::int as priority,"
        " nextval(pg_get_serial_sequence('dag_version', 'version_key')) as version_key"
        f" from generate_series(1, {copies}) i"
    )
    _copy_versions(conn)


def add_finished(conn: Conn, tasks: int) -> None:
    """History: so many tasks that ended well a day ago, 100 a run, with an event each."""
    conn.execute("insert into code (code_hash, archive) values ('finished', '')")
    conn.execute(
        "insert into dag_version (dag_id, version_number, spec, spec_hash, code_hash, file)"
        " values ('finished', 1, '{}', 'finished', 'finished', 'bench.py')"
    )
    conn.execute(
        "insert into dag_run (run_key, dag_id, run_id, version_key, state, run_type, started_at, ended_at)"
        " select next_run_key() - (86400000::bigint << 20), 'finished', 'finished' || i, v.version_key, 'success', 'manual',"
        " now() - interval '1 day', now() - interval '1 day'"
        " from dag_version v, generate_series(1, %s) i where v.dag_id = 'finished'",
        [tasks // 100],
    )
    conn.execute(
        "insert into task_instance (run_key, task_index, state, try_number, epoch, queued_at, started_at, ended_at)"
        " select run_key, i, 'success', 1, 1, started_at, started_at, ended_at"
        " from dag_run, generate_series(0, 99) i where dag_id = 'finished'"
    )
    conn.execute(
        "insert into task_event (run_key, task_index, map_index, at, epoch, try_number, event, state)"
        " select run_key, i, -1, ended_at, 1, 1, 'succeed', 'success'"
        " from dag_run, generate_series(0, 99) i where dag_id = 'finished'"
    )


def _number(conn: Conn, run_key: int, copies: int, **names: str) -> None:
    """Makes the temporary tables ``k``, what the template is known by, and ``c``, what each copy is."""
    conn.execute("drop table if exists k, c")
    conn.execute(
        "create temporary table k as select r.run_key, r.dag_id, r.run_id, r.version_key,"
        " coalesce((select limit_id from concurrency_limit where run_key = r.run_key), 0) as limit_id,"
        " (select count(*) from lane where run_key = r.run_key) as lanes,"
        " (select count(*) from dispatch where run_key = r.run_key) as dispatches"
        f" from dag_run r where r.run_key = {run_key}"
    )
    row = conn.execute("select lanes, dispatches, limit_id from k").fetchone()
    assert row is not None
    if row[0] > 1 or row[1] > 1:
        raise ValueError(f"Run {run_key} has {row[0]} lanes and {row[1]} dispatches: a template has one at most.")
    limit_id = "nextval(pg_get_serial_sequence('concurrency_limit', 'limit_id'))" if row[2] else "0"
    lanes, epochs = (_reserve(conn, sequence, copies) for sequence in ("lane_seq", "epoch_seq"))
    named = ", ".join(f"{value} as {name}" for name, value in names.items())
    conn.execute(
        f"create temporary table c as select i, next_run_key() as run_key, {limit_id} as limit_id,"
        f" {lanes} + i - 1 as lane_id, {epochs} + i - 1 as epoch, {named}"
        f" from k, generate_series(1, {copies}) i"
    )
    conn.execute("alter table c alter priority type int using priority::int")
    conn.execute("analyze c")


def _reserve(conn: Conn, sequence: str, numbers: int) -> int:
    """The first of so many numbers that no scheduler will take."""
    row = conn.execute(f"select nextval('{sequence}')").fetchone()
    assert row is not None
    conn.execute(f"select setval('{sequence}', {row[0] + (numbers // BLOCK + 1) * BLOCK})")
    return int(row[0])


def _named(group: str) -> str:
    """The id of DAG i, as ``specs.plan`` has it."""
    return f"'{group}_' || lpad(i::text, greatest(3, length(i::text)), '0')"


def _copy_versions(conn: Conn) -> None:
    version = {"dag_id": "c.dag_id", "version_key": "c.version_key"}
    _multiply(conn, "dag_version", "t.version_key = k.version_key", {**version, "spec": _SPEC, "spec_hash": "c.dag_id"})
    _multiply(conn, "task", "t.version_key = k.version_key", {"version_key": "c.version_key"})
    _multiply(conn, "dag", "t.dag_id = k.dag_id", version)


def _copy(conn: Conn, run_key: int) -> None:
    for table, differs in _OF_RUN.items():
        _multiply(conn, table, "t.run_key = k.run_key", differs)
    of_lane = "t.lane_id in (select lane_id from lane where lane.run_key = k.run_key)"
    _multiply(conn, "ready_task", of_lane, {"lane_id": "c.lane_id"})
    conn.execute(
        "update concurrency_limit l set used = l.used + (select count(*) from c) * h.used from ("
        " select held.limit_id, sum(case held.n when 1 then d.pool_slots else 1 end) as used"
        " from dispatch d, unnest(d.holds) with ordinality as held (limit_id, n)"
        " where d.run_key = %s group by 1) as h"
        " where l.limit_id = h.limit_id and l.run_key = 0",
        [run_key],
    )


def _multiply(conn: Conn, table: str, template: str, differs: dict[str, str]) -> None:
    """Copies the rows of ``table`` that are the template's once for each copy."""
    rows = conn.execute(
        "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 and not attisdropped and attgenerated = ''",
        [table],
    ).fetchall()
    columns = [name for (name,) in rows]
    conn.execute(
        sql.SQL("insert into {} ({}) overriding system value select {} from {} t, k, c where {} order by c.i").format(
            sql.Identifier(table),
            sql.SQL(", ").join(map(sql.Identifier, columns)),
            sql.SQL(", ").join(sql.SQL(differs[n]) if n in differs else sql.Identifier("t", n) for n in columns),
            sql.Identifier(table),
            sql.SQL(template),
        )
    )
