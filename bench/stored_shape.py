"""A shape in the database: its DAGs and pools as the API stores them, and its runs as triggers do."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import psycopg
import specs

from evenflow.core.graph import creation_line
from evenflow.core.model import DagSpec
from evenflow.store.db.connect import UNBOUNDED, connect_async
from evenflow.store.serving import dags
from evenflow.store.serving.dag_limits import change_limits


async def store_shape(url: str, shape: dict[str, Any]) -> dict[str, specs.Planned]:
    """Stores pools and DAGs; answers what was planned, by DAG id."""
    plans = {p.spec.dag_id: p for p in specs.plan(shape)}
    await store_specs(url, [plan.spec for plan in plans.values()], specs.pools(shape))
    return plans


async def store_specs(url: str, dag_specs: Sequence[DagSpec], pools: dict[str, int]) -> None:
    async with await connect_async(url, name="bench", timeouts=UNBOUNDED) as conn, conn.transaction():
        for name, slots in pools.items():
            await conn.execute(
                "insert into concurrency_limit (kind, name, capacity) values ('pool', %s, %s)"
                " on conflict (run_key, kind, name) do update set capacity = excluded.capacity",
                [name, slots],
            )
            await conn.execute("insert into pool (name) values (%s) on conflict do nothing", [name])
        await dags.insert_code(conn, "none", b"")
        for spec in dag_specs:
            version = await dags.insert_version(
                conn,
                dag_id=spec.dag_id,
                spec=spec.to_json(),
                spec_hash=spec.hash(),
                code_hash="none",
                file="bench.py",
                tasks=spec.tasks,
            )
            await dags.upsert(
                conn,
                dag_id=spec.dag_id,
                version_key=version,
                bundle="bench",
                file="bench.py",
                line=creation_line(spec),
                is_paused=False,
                next_run=dags.NextRun(None, None),
            )
            await change_limits(conn, [spec])


def trigger(conn: psycopg.Connection[Any], runs: dict[str, int], prefix: str) -> float:
    """Creates so many runs of each DAG in one commit, named ``prefix`` and a number; answers when, seconds since 1970."""
    with conn.transaction():
        conn.execute(
            "insert into dag_run (dag_id, run_id, version_key, run_type)"
            " select d.dag_id, %s || i, d.version_key, 'manual'"
            " from unnest(%s::text[], %s::int[]) as g (dag_id, runs) join dag d using (dag_id), generate_series(1, g.runs) i",
            [prefix, list(runs), list(runs.values())],
        )
        conn.execute("select pg_notify('inbox', '')")
        return time.time()


def failed_run(conn: psycopg.Connection[Any], dag_id: str, run_id: str) -> int:
    """A run that has failed, without its tasks."""
    row = conn.execute(
        "insert into dag_run (dag_id, run_id, version_key, run_type, state, started_at, ended_at)"
        " select dag_id, %s, version_key, 'manual', 'failed', now(), now() from dag where dag_id = %s returning run_key",
        [run_id, dag_id],
    ).fetchone()
    assert row is not None
    return int(row[0])
