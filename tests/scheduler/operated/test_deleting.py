"""A DAG with very many runs is deleted, and others notice nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from evenflow.core.model import DagSpec, TaskSpec
from evenflow.scheduler.advance import advance
from evenflow.store.db.connect import connect_async
from evenflow.store.serving import dag_deletion, operations
from tests.scheduler.world import World

RUNS = 100_000
EVERY = 50  # slices
ONE = (TaskSpec(task_id="a", operator="python"),)


@pytest.mark.slow
def test_exits_are_applied_while_any_slice_of_a_deletion_has_its_locks(
    world: World, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-HA19: 100,000 runs go in slices of bounded size; in the middle of one, before its commit, what others report is applied and
    their tasks start, and nobody waits for a lock.
    """
    world.add_dag(DagSpec(dag_id="gone", tasks=ONE))
    world.add_dag(DagSpec(dag_id="other", tasks=(*ONE, TaskSpec(task_id="b", operator="python", upstream=(0,)))))
    world.conn.execute(
        "with made as (insert into dag_run (dag_id, run_id, version_key, run_type, state, started_at, ended_at)"
        " select dag_id, n::text, version_key, 'manual', 'success', now(), now() from dag, generate_series(1, %s) n"
        " where dag_id = 'gone' returning run_key)"
        " insert into task_instance (run_key, task_index, state, try_number, ended_at)"
        " select run_key, 0, 'success', 1, now() from made",
        [RUNS],
    )
    world.conn.execute("update dag set is_active = false where dag_id = 'gone'")
    world.conn.execute("analyze")
    world.conn.execute("set lock_timeout = '1s'")  # who waits fails
    delete, slices, applied = operations.delete_runs, list[int](), 0

    async def delete_and_look(conn: Any, run_keys: Sequence[int]) -> int:
        nonlocal applied
        deleted = await delete(conn, run_keys)
        slices.append(deleted)
        if len(slices) % EVERY == 1:
            world.trigger("other")
            for task_id in ("a", "b"):
                advance(world.conn, world.catalog)
                (attempt,) = world.claim()
                assert attempt.task_id == task_id
                world.report([attempt])
                applied += 1
            advance(world.conn, world.catalog)
        return deleted

    monkeypatch.setattr(operations, "delete_runs", delete_and_look)

    async def go() -> dag_deletion.Deletion:
        async with await connect_async(database_url, name="operator") as conn:
            return await dag_deletion.delete_dag(conn, "gone", actor="ann")

    assert asyncio.run(go()) == dag_deletion.Deletion(True, RUNS)
    assert max(slices) <= dag_deletion.RUNS_AT_ONCE
    assert sum(slices) == RUNS
    assert applied == 2 * len(range(0, len(slices), EVERY)) >= 2 * RUNS // dag_deletion.RUNS_AT_ONCE // EVERY
    assert world.conn.execute("select count(*), count(*) filter (where state = 'success') from dag_run").fetchone() == (
        applied // 2,
        applied // 2,
    )
    world.audit()
