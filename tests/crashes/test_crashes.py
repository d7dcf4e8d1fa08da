"""R-HA1, R-HA3, R-HA5, R-HA9, R-CS3, R-CS7, R-DQ9: schedulers, workers, triggerers and API servers die between any two statements;
nothing is lost, and nothing happens twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from evenflow.store.db.connect import connect_async
from tests.crashes.schedulers import Scheduler
from tests.crashes.story import Story
from tests.scheduler.world import World

pytestmark = pytest.mark.system

SCHEDULERS = 5
STEPS = 60
FEW, MANY = 30, 2_000


@pytest.fixture
def schedulers(world: World, database_url: str) -> Iterator[list[Scheduler]]:
    found = [Scheduler(database_url, number, world.conn) for number in range(SCHEDULERS)]
    yield found
    for scheduler in found:
        scheduler.close()


async def told(world: World, url: str, schedulers: list[Scheduler], seeds: range, **how: Any) -> Counter[str]:
    """Plays a story for each seed; how often what was done in all of them."""
    for pool in ("p1", "p2"):
        world.pool(pool, 6)
    done: Counter[str] = Counter()
    async with await connect_async(url, name="api") as api, await connect_async(url, name="reports") as reports:
        for seed in seeds:
            try:
                story = Story(world, url, api, reports, schedulers, seed, **how)
                await story.play(STEPS)
                await story.quiesce()
                story.check()
            except Exception as error:
                error.add_note(f"in the story of seed {seed}")
                raise
            done += story.done
            done["processes"] += len(story.ledger.begun)
            done["events"] += story.triggers.fired
            done["triggers begun"] += story.triggers.begun
            done["resumes"] += sum(process.purpose == "event" for process in story.ledger.begun.values())
            done["lost"] += len(story.ledger.begun) - len(story.ledger.outcomes)
    done["given"] = sum(scheduler.given for scheduler in schedulers)
    done["deaths"] = sum(scheduler.deaths for scheduler in schedulers)
    return done


async def test_whoever_dies(world: World, database_url: str, schedulers: list[Scheduler]) -> None:
    done = await told(world, database_url, schedulers, range(FEW))
    assert done["deaths"] > FEW
    assert done["lost"] > FEW / 4, done
    assert done["forgotten"] > FEW / 4, done
    assert done["processes"] > 5 * FEW
    assert done["together"] > FEW
    assert done["broken commits"] > FEW / 4, done
    assert done["given"] > FEW, done
    assert done["resumes"] > 2 * FEW
    assert done["triggers begun"] > 1.1 * done["events"]  # the others failed, or their triggerer was lost


async def test_outages_lose_no_try(world: World, database_url: str, schedulers: list[Scheduler]) -> None:
    """R-CS7: of everybody at once, longer than all leases."""
    done = await told(world, database_url, schedulers, range(10), steady=True)
    assert done["outage"] > 20
    assert done["lost"] == 0
    assert world.conn.execute("select count(*) from task_event where event = 'requeue'").fetchone() == (0,)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(10))
async def test_many(world: World, database_url: str, schedulers: list[Scheduler], part: int) -> None:
    each = MANY // 10
    done = await told(world, database_url, schedulers, range(10_000 + part * each, 10_000 + (part + 1) * each))
    assert done["deaths"] > each
