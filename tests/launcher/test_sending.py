"""A launcher and what it sends (R-EX2, R-HA2), on a real database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from evenflow.errors import ExecutorUnavailable
from evenflow.launcher import limits
from evenflow.launcher.executor import LaunchFailure, LaunchLedger, PushExecutor
from evenflow.launcher.service import LauncherService
from evenflow.store.serving.executors import ExecutorRow
from tests.launcher.world import Memory, Pushed
from tests.waiting import until


@asynccontextmanager
async def launcher(url: str, memory: Memory, name: str = "launcher") -> AsyncIterator[LauncherService]:
    def make(row: ExecutorRow, ledger: LaunchLedger) -> PushExecutor:
        return memory

    service = LauncherService(url, name=name, make=make)
    await service.start()
    try:
        yield service
    finally:
        await service.stop()


async def test_what_comes_is_sent_again_and_again(pushed: Pushed, database_url: str) -> None:
    """R-EX1: what was there, and what comes later."""
    memory, sent = Memory(), pushed.tries(2)
    async with launcher(database_url, memory):
        await until(lambda: memory.epochs == sent)
        for _ in range(3):
            sent.extend(pushed.tries(1))
            await until(lambda: len(memory.sent) == len(sent))
    assert memory.epochs == sent
    assert memory.closed
    assert pushed.unsent() == []


async def test_of_two_launchers_one_sends_each_try(pushed: Pushed, database_url: str) -> None:
    """R-HA3: any number may run."""
    memory = Memory()
    async with launcher(database_url, memory, "one"), launcher(database_url, memory, "two"):
        sent = pushed.tries(50)
        await until(lambda: len(memory.sent) >= 50)
    assert sorted(memory.epochs) == sent


async def test_what_a_broker_does_not_take_waits_for_it(pushed: Pushed, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-EX2: broker loss; also of a batch of which only some were taken."""
    monkeypatch.setattr(limits, "PAUSE_S", 0.01)
    one, two = pushed.tries(2)
    memory = Memory(failing=[ExecutorUnavailable("away"), {two: LaunchFailure("broke off")}])
    async with launcher(database_url, memory):
        await until(lambda: two in memory.epochs)
    sends = dict(pushed.all("select epoch, sends from dispatch"))
    assert sends[two] == 3
    assert sends[one] == 2


async def test_what_was_lost_is_sent_again_and_what_is_late_is_not(pushed: Pushed, database_url: str) -> None:
    """R-EX2: lost messages."""
    late, lost = pushed.tries(2)
    pushed.take()
    pushed.age(3_600)
    memory = Memory(lost={lost: LaunchFailure("no such message")})
    async with launcher(database_url, memory):
        await until(lambda: memory.epochs == [lost])
    assert sorted(memory.asked) == [late, lost]


async def test_a_try_that_can_never_become_anything_is_lost(pushed: Pushed, database_url: str) -> None:
    """R-EX1: its task is tried again as after any loss, and says why."""
    (epoch,) = pushed.tries()
    memory = Memory(failing=[{epoch: LaunchFailure("the image cannot be pulled", again=False)}])
    async with launcher(database_url, memory):
        await until(lambda: pushed.one("select payload ->> 'reason' from report where kind = 'lost'"))
    assert pushed.one("select payload ->> 'reason' from report where kind = 'lost'") == "the image cannot be pulled"


async def test_an_executor_that_is_deleted_is_sent_nothing_more(pushed: Pushed, database_url: str) -> None:
    """R-EX1: and one that is made while launchers run is served."""
    memory = Memory()
    async with launcher(database_url, memory):
        pushed.executor("more", queues=["more"])
        epochs = pushed.tries(queue="more")
        await until(lambda: memory.epochs == epochs)
        pushed.conn.execute("delete from executor where name = 'more'")
        await until(lambda: memory.closed)
        pushed.tries(queue="more")
        pushed.tries()
        await until(lambda: len(memory.sent) == 2)
    assert [each.queue for each in memory.sent] == ["more", "etl"]
