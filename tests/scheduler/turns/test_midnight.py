"""A backup that lasts beyond midnight, while turns run: a real pg_dump that is held open."""

from __future__ import annotations

import asyncio
import subprocess
from typing import Any

import pytest

from evenflow.core.limits import PARTITIONS_AHEAD
from evenflow.core.metrics import DATABASE_FAILURES
from evenflow.runtime.dump import connection_arguments, find_dump_programs
from evenflow.scheduler.duties import partitions
from evenflow.scheduler.service import SchedulerService
from evenflow.store.scheduling.partitions import read_days_ahead
from tests.scheduler.together.test_service import CHAIN, work
from tests.scheduler.world import World
from tests.waiting import DEADLINE_S, wait_until

ATTEMPTS = 10  # to make partitions, while the dump lasts


@pytest.mark.slow
async def test_a_dump_across_midnight_stops_no_turn(world: World, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-HA20: no partition of the new day is there, and none can be made before the dump has ended."""
    monkeypatch.setattr(partitions, "PARTITION_RETRY_S", 0.1)
    attempts = 0
    make = partitions.partitions.attach

    def attach(*args: Any) -> None:
        nonlocal attempts
        attempts += 1
        make(*args)

    monkeypatch.setattr(partitions.partitions, "attach", attach)
    world.add_dag(CHAIN)
    world.conn.execute(
        "insert into audit_event (actor, action, object) select 'a', 'b', repeat(md5(n::text), 99) from generate_series(1, 9999) n"
    )
    programs = find_dump_programs(world.conn.info.server_version // 10_000)
    target, environment = connection_arguments(database_url)
    dump = subprocess.Popen([programs["pg_dump"], target], env=environment, stdout=subprocess.PIPE)  # noqa: ASYNC220
    locked = (
        "select count(*) from pg_locks where relation = 'task_event_default'::regclass and mode = 'AccessShareLock'"
        " and pid <> pg_backend_pid()"
    )
    await asyncio.to_thread(wait_until, lambda: world.conn.execute(locked).fetchone() != (0,), within_s=DEADLINE_S)
    service = SchedulerService(database_url, name="s")
    try:
        await service.start()
        ended = 0
        while attempts < ATTEMPTS or ended < 2:
            run = world.trigger("d")
            await asyncio.to_thread(wait_until, lambda: work(world), within_s=DEADLINE_S)
            assert world.run_state(run) == "success"
            ended += 1
        assert dump.poll() is None
        assert read_days_ahead(world.conn) == -1
        assert service.health.meter.value(DATABASE_FAILURES, "turns") == 0, "not one turn is ended"
        await asyncio.to_thread(dump.communicate)
        assert dump.returncode == 0
        await asyncio.to_thread(wait_until, lambda: read_days_ahead(world.conn) == PARTITIONS_AHEAD, within_s=DEADLINE_S)
        assert world.conn.execute("select count(*) from task_event_default").fetchone() == (0,), "they have moved to their day"
        assert world.conn.execute("select count(*) from task_event").fetchone() == (2 * 5 * ended,)
    finally:
        dump.kill()
        await service.stop()
    world.audit()
