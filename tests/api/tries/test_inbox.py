"""Reports of many workers: one commit for what comes while another is under way, and each worker's own answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from evenflow.api import inbox, limits
from evenflow.api.inbox import Inbox
from evenflow.errors import XComError
from evenflow.store.db.connect import AsyncPool, open_pool
from tests.api.world import World
from tests.waiting import WAIT_FOR_LOCKS, until


def exit_of(epoch: int, **other: object) -> bytes:
    said = {"run_key": epoch, "task_index": 0, "map_index": -1, "epoch": epoch, "kind": "exit", "age_s": 0}
    return json.dumps({**said, "payload": {"outcome": "success"}, **other}).encode()


BAD = {"payload": {"reason": "\0"}}  # which no database can hold


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[AsyncPool]:
    opened = await open_pool(database_url, name="reports", max_size=limits.REPORT_POOL, generic_plans=True)
    yield opened
    await opened.close()


@asynccontextmanager
async def while_writers_wait(world: World, database_url: str, reports: Inbox) -> AsyncIterator[list[asyncio.Task[inbox.Failures]]]:
    """Meanwhile nothing can be stored: as many batches as there are writers wait, one report each, whose tasks this is."""
    first = []
    with psycopg.connect(database_url) as other:
        other.execute("lock table report in exclusive mode")
        for epoch in range(1, limits.REPORT_POOL + 1):
            first.append(asyncio.create_task(reports.put([exit_of(epoch)])))
            await until(lambda epoch=epoch: waiting(world) == epoch)
        yield first
        assert not any(task.done() for task in first), "nobody is answered before the commit"


def waiting(world: World) -> int:
    return int(world.one(WAIT_FOR_LOCKS))


def batches(world: World) -> list[int]:
    """How many reports each transaction stored."""
    return [count for (count,) in world.conn.execute("select count(*) from report group by xact order by xact").fetchall()]


async def test_what_comes_during_a_commit_is_the_next_one(pool: AsyncPool, world: World, database_url: str) -> None:
    """R-HA14: however many workers report it."""
    reports = Inbox(pool)
    async with while_writers_wait(world, database_url, reports) as first:
        rest = [asyncio.create_task(reports.put([exit_of(epoch), exit_of(epoch + 500)])) for epoch in range(100, 200)]
    assert await asyncio.gather(*first, *rest) == [{}] * (len(first) + 100)
    assert sorted(batches(world)) == [*[1] * limits.REPORT_POOL, 200]


async def test_no_report_waits_for_company(pool: AsyncPool, world: World) -> None:
    reports = Inbox(pool)
    for epoch in (1, 2, 3):
        assert await reports.put([exit_of(epoch)]) == {}
    assert batches(world) == [1, 1, 1]


@pytest.mark.parametrize(("bound", "most"), [("REPORTS", 20), ("EXECUTION_BODY", 10 * len(exit_of(100)) + 9)])
async def test_a_commit_is_bounded(
    pool: AsyncPool, world: World, database_url: str, monkeypatch: pytest.MonkeyPatch, bound: str, most: int
) -> None:
    """By number and by size; what one request brings is stored together, however much it is."""
    monkeypatch.setattr(limits, bound, most)
    reports = Inbox(pool)
    async with while_writers_wait(world, database_url, reports) as first:
        large = asyncio.create_task(reports.put([exit_of(300 + n) for n in range(30)]))
        rest = [asyncio.create_task(reports.put([exit_of(epoch)])) for epoch in range(100, 140)]
    await asyncio.gather(*first, large, *rest)
    at_once = most if bound == "REPORTS" else 10
    assert sorted(batches(world)) == [*[1] * limits.REPORT_POOL, *[at_once] * (40 // at_once), 30]


async def test_what_cannot_be_stored_is_a_matter_of_its_sender(pool: AsyncPool, world: World, database_url: str) -> None:
    """R-WK8: among reports of a hundred workers."""
    reports = Inbox(pool)
    async with while_writers_wait(world, database_url, reports) as first:
        rest = [
            asyncio.create_task(reports.put([exit_of(epoch), exit_of(epoch + 500, **(BAD if epoch == 137 else {}))]))
            for epoch in range(100, 200)
        ]
    await asyncio.gather(*first)
    answers = dict(zip(range(100, 200), await asyncio.gather(*rest), strict=True))
    failures = answers.pop(137)
    assert list(failures) == [1]
    assert isinstance(failures[1], XComError)
    assert set(map(len, answers.values())) == {0}
    assert world.one("select count(*) from report where epoch = 637") == 0
    assert world.one("select count(*) from report") == 199 + limits.REPORT_POOL


async def test_what_fails_for_another_reason_does_not_fail_others(pool: AsyncPool, world: World, database_url: str) -> None:
    world.conn.execute("create function fail() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$")
    world.conn.execute("create trigger fail before insert on report for each row when (new.epoch = 137) execute function fail()")
    reports = Inbox(pool)
    async with while_writers_wait(world, database_url, reports) as first:
        rest = [asyncio.create_task(reports.put([exit_of(epoch)])) for epoch in range(130, 140)]
    await asyncio.gather(*first)
    answers = await asyncio.gather(*rest)
    assert [bool(answer) for answer in answers] == [epoch == 137 for epoch in range(130, 140)]
    assert isinstance(answers[7][0], psycopg.errors.RaiseException)


async def test_nobody_is_told_that_it_is_stored_when_it_may_not_be(pool: AsyncPool, world: World, database_url: str) -> None:
    """R-CS5: not those of the batch whose connection breaks; and the ones behind it are stored by another."""
    reports = Inbox(pool)
    async with while_writers_wait(world, database_url, reports) as first:
        rest = [asyncio.create_task(reports.put([exit_of(epoch)])) for epoch in range(100, 110)]
        world.conn.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        )
        for told in await asyncio.gather(*first, return_exceptions=True):
            assert isinstance(told, psycopg.OperationalError)
        first.clear()
    assert await asyncio.gather(*rest) == [{}] * 10
    assert world.one("select count(*) from report") == 10
