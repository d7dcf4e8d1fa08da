"""Too many connections: PostgreSQL refuses new ones, and whoever needs one waits and comes back by itself."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql

from evenflow.core.model import DagSpec, TaskSpec
from evenflow.scheduler.database import Outage
from evenflow.scheduler.service import SchedulerService
from tests.scheduler.together.test_service import work
from tests.scheduler.world import World
from tests.waiting import DEADLINE_S, wait_until

DAG = DagSpec(dag_id="d", tasks=(TaskSpec(task_id="a", operator="python"), TaskSpec(task_id="b", operator="python", upstream=(0,))))


@contextmanager
def exhausted(conn: psycopg.Connection[Any], url: str) -> Iterator[None]:
    """Everybody but ``conn`` is thrown out of the database, and nobody gets in."""
    name = sql.Identifier(conn.info.dbname)
    conn.execute(sql.SQL("alter database {} connection limit 1").format(name))
    conn.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    )
    with pytest.raises(psycopg.OperationalError, match="too many connections"), contextlib.closing(psycopg.connect(url)):
        pass
    try:
        yield
    finally:
        conn.execute(sql.SQL("alter database {} connection limit -1").format(name))


async def test_a_scheduler_waits_for_a_connection_and_loses_nothing(
    world: World, database_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[str] = []
    note = Outage.note
    monkeypatch.setattr(Outage, "note", lambda self, what, error: noted.append(str(error)) or note(self, what, error))
    monkeypatch.setattr("evenflow.scheduler.service.RETRY_S", 0.1)
    world.add_dag(DAG)
    service = SchedulerService(database_url, name="s")
    await service.start()
    first = world.trigger("d")
    world.conn.execute("notify inbox")
    await asyncio.to_thread(wait_until, lambda: world.states(first).get("a") == "queued", within_s=DEADLINE_S)
    refused = "too many connections"
    with caplog.at_level(logging.WARNING), exhausted(world.conn, database_url):
        tries = world.claim()
        second = world.trigger("d")
        await asyncio.to_thread(wait_until, lambda: sum(refused in error for error in noted) > 3, within_s=DEADLINE_S)
    assert sum("waiting for it" in record.getMessage() for record in caplog.records) == 1
    world.report(tries)
    world.conn.execute("notify inbox")
    await asyncio.to_thread(wait_until, lambda: work(world), within_s=10)
    await service.stop()
    assert (world.run_state(first), world.run_state(second)) == ("success", "success")
    world.audit()
