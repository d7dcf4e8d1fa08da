"""Tries that a worker is handed: claimed together, each once, and none is forgotten when the worker has to register anew."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evenflow.core.executors import CELERY
from evenflow.store.serving import executors
from evenflow.worker.handed import Handed, HandedTries
from evenflow.worker.service import WorkerService
from tests.waiting import until
from tests.worker.conftest import StartWorker
from tests.worker.test_deferring import job
from tests.worker.world import World, wait_for
from tests.world import at_once

QUEUE = "etl"


@pytest.fixture
async def handed(world: World, start_worker: StartWorker) -> WorkerService:
    told: dict[str, Any] = {"name": "batch", "kind": CELERY, "queues": [QUEUE], "slots": 9, "options": {}, "by": "test"}
    assert at_once(executors.set_executor(world.awaited, **told))
    return await start_worker(slots=4, resume_slots=0, queues=(QUEUE,), handed=True)


@pytest.fixture
async def handed_too(world: World, start_worker: StartWorker) -> WorkerService:
    """One that has a slot for resumes beside its sender's four places."""
    told: dict[str, Any] = {"name": "batch", "kind": CELERY, "queues": [QUEUE], "slots": 9, "options": {}, "by": "test"}
    assert at_once(executors.set_executor(world.awaited, **told))
    return await start_worker(slots=4, resume_slots=1, queues=(QUEUE,), handed=True)


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


# -- resumes -----------------------------------------------------------------------------------------------------------


def sent(world: World, *epochs: int) -> None:
    """A launcher has sent these, and their messages wait in the broker's line."""
    world.conn.execute("update dispatch set sent_at = now(), sends = 1 where epoch = any(%s)", [list(epochs)])


async def deferred(world: World, worker: WorkerService, resume: str) -> int:
    """The epoch of a try that waits, and does this when it is back."""
    epoch = job(world, resume=resume, queue=QUEUE)
    assert await worker.run_try(epoch) is Handed.ENDED
    assert (await world.exit_of(epoch))["outcome"] == "deferred"
    return epoch


async def busy(world: World, worker: WorkerService, until_there: Path, number: int) -> list[asyncio.Task[Handed]]:
    """So many places, each with a try that runs until this file is there."""
    tries = [world.task(wait_for(until_there), queue=QUEUE) for _ in range(number)]
    places = [asyncio.create_task(worker.run_try(epoch)) for epoch in tries]
    await until(lambda: set(tries) <= set(worker._tries.epochs), "the places to be busy")
    return places


async def test_a_resume_gets_in_while_every_place_is_busy_and_first_starts_wait(
    handed_too: WorkerService, world: World, tmp_path: Path
) -> None:
    """R-DQ3: by the worker's own claim; its message comes later, and finds it gone."""
    waits = await deferred(world, handed_too, "return 'back'")
    places = await busy(world, handed_too, tmp_path / "go", 4)
    first_start = world.task("pass", queue=QUEUE)
    sent(world, first_start)
    resumed = world.comes_back(waits)
    assert (await world.exit_of(resumed))["outcome"] == "success"
    assert not any(place.done() for place in places)
    assert not world.claimed(first_start)
    assert await handed_too.run_try(resumed) is Handed.GONE
    (tmp_path / "go").touch()
    assert await asyncio.gather(*places) == [Handed.ENDED] * 4


async def test_no_more_resumes_run_than_it_has_slots_for_however_many_places_are_free(
    handed_too: WorkerService, world: World, tmp_path: Path
) -> None:
    """R-DQ3: a place may be given a message at any moment, so the others wait for one, or for the slot."""
    waits = f"{wait_for(tmp_path / 'go')}return 'back'".replace("import os, time\n", "")
    one, other, last = [world.comes_back(await deferred(world, handed_too, waits)) for _ in range(3)]
    await until(lambda: handed_too._tries.epochs == [one], "one resume to run")
    assert (handed_too._tries.free, handed_too._tries.spare) == (4, 0)
    place = asyncio.create_task(handed_too.run_try(other))
    await until(lambda: set(handed_too._tries.epochs) == {one, other}, "the other to run in a place")
    assert (handed_too._tries.free, handed_too._tries.spare) == (3, 0)
    assert not world.claimed(last)
    (tmp_path / "go").touch()
    assert await place is Handed.ENDED
    assert (await world.exit_of(last))["outcome"] == "success"


async def test_when_its_sender_is_about_to_end_it_asks_for_no_more_resumes(handed_too: WorkerService, world: World) -> None:
    """R-AS8: what is handed over still runs, as a warm shutdown of Celery has it."""
    claims = handed_too._claims
    assert isinstance(claims, HandedTries)
    await until(lambda: claims.polls.under_way, "it to ask")
    claims.leave()
    await until(lambda: not claims.polls.under_way, "it to ask no more")
    resumed = world.comes_back(await deferred(world, handed_too, "return 'back'"))
    assert await handed_too.run_try(world.task("pass", queue=QUEUE)) is Handed.ENDED
    assert not world.claimed(resumed)
    assert await handed_too.run_try(resumed) is Handed.ENDED


async def test_a_worker_that_drains_claims_nothing_more(handed: WorkerService, world: World) -> None:
    """R-AS8: whoever hands it something has that sent to another one."""
    epoch = world.task("pass", queue=QUEUE)
    await handed.drain(5)
    assert await handed.run_try(epoch) is Handed.LATER
    assert world.one("select worker_id from dispatch where epoch = %s", epoch) is None
