"""Tries that another process hands to a worker, and what it hears of whether that is of use."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evenflow.worker.handed import Handed, Intake
from evenflow.worker.handing import Handing, ask_to_leave, follow_intake, hand
from tests.waiting import until


class Worker:
    """Runs what it is handed until it is told that this has ended."""

    def __init__(self, path: Path) -> None:
        self.path, self.intake, self.leaves = str(path), Intake(), asyncio.Event()
        self.running: dict[int, asyncio.Future[Handed]] = {}

    async def run_try(self, epoch: int) -> Handed:
        self.running[epoch] = asyncio.get_running_loop().create_future()
        return await self.running[epoch]


@pytest.fixture
async def worker(tmp_path: Path) -> AsyncIterator[Worker]:
    worker = Worker(tmp_path / "handed")
    handing = asyncio.create_task(Handing(worker.path, worker.run_try, worker.intake, worker.leaves.set).run())
    await until(lambda: Path(worker.path).exists(), "it to listen")
    yield worker
    handing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await handing


async def test_who_hands_a_try_over_hears_what_became_of_it(worker: Worker) -> None:
    """R-EX2: and many wait at once."""
    waiting = [asyncio.create_task(asyncio.to_thread(hand, worker.path, epoch)) for epoch in (1, 2)]
    await until(lambda: len(worker.running) == 2, "both to be handed over")
    worker.running[2].set_result(Handed.GONE)
    assert await waiting[1] is Handed.GONE
    assert not waiting[0].done()
    worker.running[1].set_result(Handed.ENDED)
    assert await waiting[0] is Handed.ENDED


@pytest.mark.parametrize("epoch", [0, -1, 2**63, 2**64, 10**40])
async def test_what_can_be_no_try_is_not_asked_for(worker: Worker, epoch: int) -> None:
    """R-EX2: a forged message is gone, and keeps up nothing that came with it."""
    assert await asyncio.to_thread(hand, worker.path, epoch) is Handed.GONE
    assert worker.running == {}


async def test_a_sender_that_is_about_to_end_says_so_and_hands_over_what_it_has(worker: Worker) -> None:
    """R-DQ3: that is no try, and is answered with nothing."""
    await asyncio.to_thread(ask_to_leave, worker.path)
    await asyncio.wait_for(worker.leaves.wait(), 20)
    waiting = asyncio.create_task(asyncio.to_thread(hand, worker.path, 7))
    await until(lambda: list(worker.running) == [7], "it to be handed over")
    worker.running[7].set_result(Handed.ENDED)
    assert await waiting is Handed.ENDED


async def test_who_follows_the_intake_hears_each_change_of_it(worker: Worker) -> None:
    """R-AS4: while a worker is fenced nothing is to be brought to it."""
    heard: list[bool] = []
    following = asyncio.create_task(asyncio.to_thread(lambda: [heard.append(each) for each in follow_intake(worker.path)]))
    await until(lambda: heard == [True], "the first word")
    worker.intake.set(is_open=True)
    worker.intake.set(is_open=False)
    await until(lambda: heard == [True, False], "it to be closed")
    worker.intake.set(is_open=True)
    await until(lambda: heard == [True, False, True], "it to be open again")
    for task in asyncio.all_tasks():
        if "_serve" in str(task.get_coro()):
            task.cancel()
    await asyncio.wait_for(following, 20)
