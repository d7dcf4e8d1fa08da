"""A launcher and what it sends (R-EX2, R-HA2), on a real database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from evenflow.control import service as database_service
from evenflow.core.limits import LEASE_S
from evenflow.errors import ExecutorUnavailable, SettingsError
from evenflow.launcher import limits
from evenflow.launcher.executor import LaunchFailure, LaunchLedger, PushExecutor
from evenflow.launcher.service import LauncherService
from evenflow.store.db.connect import connect_async
from evenflow.store.serving import views
from evenflow.store.serving.executors import LaunchedExecutor
from tests.launcher.world import Memory, Pushed
from tests.waiting import until
from tests.world import at_once


@asynccontextmanager
async def launcher(url: str, memory: Memory, name: str = "launcher") -> AsyncIterator[LauncherService]:
    def make(row: LaunchedExecutor, ledger: LaunchLedger) -> PushExecutor:
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


def told(pushed: Pushed) -> dict[str, tuple[int, str | None]]:
    """By executor, how many launchers serve it, and why one does not, or it takes nothing."""
    rows = at_once(views.list_push_executors(pushed.awaited, lease_s=LEASE_S))
    return {row["name"]: (row["launchers"], row["refusal"]) for row in rows}


async def test_an_executor_that_takes_nothing_is_told_until_it_takes_something(
    pushed: Pushed, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-EX2: as a broker that is away."""
    monkeypatch.setattr(limits, "PAUSE_S", 0.01)
    monkeypatch.setattr(limits, "LONGEST_PAUSE_S", 0.05)
    memory = Memory(failing=[ExecutorUnavailable("the broker is away")] * 10_000)
    [epoch] = pushed.tries()
    async with launcher(database_url, memory):
        await until(lambda: told(pushed) == {"elsewhere": (1, "the broker is away")})
        memory.failing.clear()
        await until(lambda: told(pushed) == {"elsewhere": (1, None)})
    assert memory.epochs == [epoch]


async def test_an_executor_whose_launcher_fails_says_so(pushed: Pushed, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-EX1: a defect is no secret, and its text, which may have one, stays in the log."""
    monkeypatch.setattr(limits, "LONGEST_PAUSE_S", 0.05)
    memory = Memory(failing=[ValueError("swordfish")] * 10_000)
    pushed.tries()
    async with launcher(database_url, memory):
        await until(lambda: told(pushed) == {"elsewhere": (1, "its launcher failed (ValueError), and its log says more")})
        memory.failing.clear()
        await until(lambda: told(pushed) == {"elsewhere": (1, None)})


async def test_a_launcher_ends_though_a_client_takes_its_cancellation_for_a_timeout(
    pushed: Pushed, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-EX2: as where both come in the same instant. It is cancelled again."""
    monkeypatch.setattr(limits, "CANCELLED_S", 0.05)
    memory = Memory()

    async def watch() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise TimeoutError from None

    monkeypatch.setattr(memory, "watch", watch)
    async with launcher(database_url, memory):
        await until(lambda: told(pushed) == {"elsewhere": (1, None)})
    assert memory.closed


async def test_a_launcher_signs_off_when_its_executors_are_closed(
    pushed: Pushed, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-HA2: until then it may have tries in hand."""
    seen: list[tuple[int, str | None]] = []

    async def close() -> None:
        seen.append(told(pushed)["elsewhere"])

    memory = Memory()
    monkeypatch.setattr(memory, "close", close)
    async with launcher(database_url, memory):
        await until(lambda: told(pushed) == {"elsewhere": (1, None)})
    assert seen == [(1, None)]
    assert told(pushed) == {"elsewhere": (0, None)}


async def test_a_turn_that_does_not_end_keeps_no_executor_open(
    pushed: Pushed, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-HA2: as where a lock of the table lasts. It is ended, and begins nothing afterwards."""
    monkeypatch.setattr(database_service, "LAST_WORDS_S", 0.1)
    monkeypatch.setattr(limits, "LOOK_S", 0.01)
    memory = Memory()
    async with await connect_async(database_url, name="a test") as other, other.transaction(), launcher(database_url, memory):
        await until(lambda: told(pushed) == {"elsewhere": (1, None)})
        await other.execute("lock table executor in access exclusive mode")
        waits = "select count(*) from pg_locks where not granted and relation = 'executor'::regclass"
        await until(lambda: pushed.one(waits) > 0)
    assert memory.closed


async def test_launchers_say_which_executors_they_serve_and_which_they_cannot(pushed: Pushed, database_url: str) -> None:
    """R-EX1: who is asked knows at once, also of an executor for which nothing waits."""

    def make(row: LaunchedExecutor, ledger: LaunchLedger) -> PushExecutor:
        if row.name == "bad":
            raise SettingsError("no broker is set")
        return Memory()

    def seen() -> dict[str, tuple[int, str | None]]:
        return told(pushed)

    pushed.executor("bad", queues=("bad",))
    assert seen() == {"elsewhere": (0, None), "bad": (0, None)}
    service = LauncherService(database_url, name="launcher", make=make)
    await service.start()
    try:
        await until(lambda: seen() == {"elsewhere": (1, None), "bad": (0, "no broker is set")})
        pushed.executor("later", queues=("later",))
        await until(lambda: seen()["later"] == (1, None))
    finally:
        await service.stop()
    assert seen() == {"elsewhere": (0, None), "bad": (0, None), "later": (0, None)}


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


async def test_a_try_that_is_refused_alone_delays_no_other(
    pushed: Pushed, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-EX2: as one that asks for more than a quota has. A pause of the executor would never end here."""
    monkeypatch.setattr(limits, "ALONE_S", 0.0)
    monkeypatch.setattr(limits, "PAUSE_S", 3_600.0)
    alone, other = pushed.tries(2)
    refused = {alone: LaunchFailure("no room", alone=True)}
    memory = Memory(failing=[refused] * 3)
    async with launcher(database_url, memory) as service:
        await until(lambda: memory.epochs == [alone], "the end of what it was refused for")
        sending = service._served["elsewhere"]
        assert (sending.trouble, sending._apart) == (None, {})
    assert dict(pushed.all("select epoch, sends from dispatch")) == {alone: 4, other: 1}


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
