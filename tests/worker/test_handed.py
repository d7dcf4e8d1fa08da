"""Tries that a worker is handed: claimed together, each once, and none is forgotten when the worker has to register anew."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from evenflow.core.executors import CELERY
from evenflow.store.serving import executors
from evenflow.worker.handed import Handed
from evenflow.worker.service import WorkerService
from tests.waiting import until
from tests.worker.conftest import StartWorker
from tests.worker.world import World
from tests.world import at_once

QUEUE = "etl"


@pytest.fixture
async def handed(world: World, start_worker: StartWorker) -> WorkerService:
    told: dict[str, Any] = {"name": "batch", "kind": CELERY, "queues": [QUEUE], "slots": 9, "options": {}, "by": "test"}
    assert at_once(executors.set_executor(world.awaited, **told))
    return await start_worker(slots=4, resume_slots=0, queues=(QUEUE,), handed=True)


async def test_a_burst_is_one_claim_and_a_second_message_is_done_with_at_once(handed: WorkerService, world: World) -> None:
    """R-EX2: which of them it gets the claim says; who brings one again waits for nothing."""
    tries = [world.task("pass", queue=QUEUE) for _ in range(3)]
    elsewhere, over = world.task("pass", queue="other"), world.task("pass", queue=QUEUE)
    world.end(over)
    became = await asyncio.gather(*(handed.run_try(epoch) for epoch in [*tries, tries[0], elsewhere, over]))
    assert became == [Handed.ENDED] * 3 + [Handed.GONE] * 3
    assert world.one("select count(distinct claim_key) from dispatch where epoch = any(%s)", tries) == 1
    assert await handed.run_try(tries[0]) is Handed.GONE, "when it has ended, too"


async def test_a_second_message_of_a_try_that_runs_changes_nothing(handed: WorkerService, world: World, tmp_path: Any) -> None:
    """R-EX2."""
    begun, go_on = tmp_path / "begun", tmp_path / "go_on"
    lines = f"import os, time\nopen({str(begun)!r}, 'w').close()\nwhile not os.path.exists({str(go_on)!r}): time.sleep(0.01)"
    epoch = world.task(lines, queue=QUEUE)
    first = asyncio.create_task(handed.run_try(epoch))
    await until(begun.exists, "it to run")
    assert await handed.run_try(epoch) is Handed.GONE
    go_on.touch()
    assert await first is Handed.ENDED


async def test_what_a_scheduler_looks_at_when_it_is_handed_over_is_asked_for_again(
    handed: WorkerService, world: World, database_url: str
) -> None:
    """R-EX2: no message is lost, which would be sent again after a minute; what comes with it waits for nothing."""
    looked_at, ends, free = (world.task("pass", queue=QUEUE) for _ in range(3))
    with psycopg.connect(database_url) as conn:
        conn.execute("select from dispatch where epoch = any(%s) for update", [[looked_at, ends]])
        first, second = (asyncio.create_task(handed.run_try(epoch)) for epoch in (looked_at, ends))
        assert await handed.run_try(free) is Handed.ENDED
        assert (first.done(), second.done()) == (False, False)
        conn.execute("delete from dispatch where epoch = %s", [ends])
    assert await first is Handed.ENDED
    assert await second is Handed.GONE


async def test_a_lost_worker_claims_nothing_until_it_is_known_again(handed: WorkerService, world: World) -> None:
    """R-EX2, R-CS7: what it is handed meanwhile is another one's."""
    epoch = world.task("pass", queue=QUEUE)
    world.conn.execute("update service set state = 'lost' where kind = 'worker'")
    assert await handed.run_try(epoch) is Handed.LATER
    await until(lambda: world.one("select count(*) from service where kind = 'worker' and state = 'active'") == 1, "it to register")
    assert await handed.run_try(epoch) is Handed.ENDED


async def test_a_worker_that_drains_claims_nothing_more(handed: WorkerService, world: World) -> None:
    """R-AS8: whoever hands it something has that sent to another one."""
    epoch = world.task("pass", queue=QUEUE)
    await handed.drain(5)
    assert await handed.run_try(epoch) is Handed.LATER
    assert world.one("select worker_id from dispatch where epoch = %s", epoch) is None
