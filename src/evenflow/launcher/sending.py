"""Sends tries to one executor: new ones at once, unclaimed ones again, after a check whether they are lost.

The database commits that a try is sent before it is sent. So a launcher that dies between the two leaves a try that is not claimed,
and that is checked when its time is over; and two launchers never send the same try.

A try that the executor refuses alone, as one that asks for more than a quota has, delays no other. It counts as sent meanwhile:
else it would be in each batch, before all with a lower priority.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict

from evenflow.core.executors import LONGEST_SEND_AGAIN_S
from evenflow.errors import ExecutorUnavailable
from evenflow.launcher import limits
from evenflow.launcher import observations as seen
from evenflow.launcher.executor import LaunchFailure, LaunchLedger, PushExecutor
from evenflow.store.db.connect import AsyncPool
from evenflow.store.db.failures import OUTAGES
from evenflow.store.serving import launches
from evenflow.store.serving.executors import LaunchedExecutor
from evenflow.store.serving.launches import Launch
from evenflow.telemetry.observing import observe


class Sending:
    """Runs until it is closed. ``news`` is set when there may be something to send. ``trouble`` says why the executor takes nothing
    now, until a turn has ended without trouble.
    """

    def __init__(self, pool: AsyncPool, row: LaunchedExecutor, executor: PushExecutor, ledger: LaunchLedger) -> None:
        self.row, self._executor = row, executor
        self._pool, self._ledger, self._meter = pool, ledger, ledger.meter
        self.news = asyncio.Event()
        self.trouble: str | None = None
        self._apart: dict[int, float] = {}  # when tries are sent again that were refused alone, by the loop's clock
        self._tasks = [
            asyncio.create_task(self._keep(self._turns), name=f"send to {row.name}"),
            asyncio.create_task(self._keep(executor.watch), name=f"watch {row.name}"),
        ]
        observe(seen.serves(row.name, row.kind, ", ".join(row.queues)))

    @property
    def waiting(self) -> dict[str, dict[str, str]]:
        """What is known of tries that were sent and not claimed, by epoch, as JSON has it."""
        return {str(epoch): asdict(pod) for epoch, pod in self._executor.waiting.items()}

    async def close(self) -> None:
        left = set(self._tasks)
        while left:  # again, where a client has taken the cancellation for a timeout of its own
            for task in left:
                task.cancel()
            _, left = await asyncio.wait(left, timeout=limits.CANCELLED_S)
        await self._executor.close()
        observe(seen.serves_no_more(self.row.name))

    async def _keep(self, loop: Callable[[], Awaitable[None]]) -> None:
        """Keeps a loop running, so that the trouble of one executor does not stop the others."""
        clock, pause_s = asyncio.get_running_loop().time, limits.PAUSE_S
        while True:
            began = clock()
            try:
                await loop()
            except (ExecutorUnavailable, TimeoutError, *OUTAGES) as error:
                self.trouble = str(error) or type(error).__name__
                observe(seen.not_taken(self.row.name, self.trouble), self._meter)
            except Exception as error:
                self.trouble = f"its launcher failed ({type(error).__name__}), and its log says more"
                observe(seen.executor_failed(self.row.name, error), self._meter)
            well = clock() - began > limits.LONGEST_PAUSE_S
            pause_s = limits.PAUSE_S if well else min(2 * pause_s, limits.LONGEST_PAUSE_S)
            await asyncio.sleep(pause_s)

    async def _turns(self) -> None:
        while True:
            self.news.clear()
            await self._send_again_apart()
            while await self._send_new():
                pass
            await self._look_after()
            self.trouble = None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limits.LOOK_S):
                    await self.news.wait()

    async def _send_again_apart(self) -> None:
        """What is lost with this launcher is overdue later."""
        now = asyncio.get_running_loop().time()
        if due := [epoch for epoch, at in self._apart.items() if at <= now]:
            await self._ledger.send_again(due)
            self._apart = {epoch: at for epoch, at in self._apart.items() if at > now}

    async def _send_new(self) -> bool:
        """Returns whether there may be more."""
        async with self._pool.connection() as conn:
            tries = await launches.take_unsent(conn, self.row.queues, most=limits.BATCH)
        if tries:
            await self._send(tries)
        return len(tries) == limits.BATCH

    async def _send(self, tries: Sequence[Launch]) -> None:
        try:
            async with asyncio.timeout(limits.SEND_S):
                failures = await self._executor.launch(tries)
        except BaseException:
            with contextlib.suppress(*OUTAGES):  # otherwise they are checked when their time is over
                await self._ledger.send_again([each.epoch for each in tries])
            raise
        observe(seen.launched(self.row.name, len(tries) - len(failures)), self._meter)
        await self._settle(failures)
        for failure in failures.values():
            if failure.again and not failure.alone:
                raise ExecutorUnavailable(failure.reason)

    async def _look_after(self) -> None:
        async with self._pool.connection() as conn:
            tries = await launches.take_overdue(
                conn,
                self.row.queues,
                after_s=self.row.send_again_s,
                most_s=LONGEST_SEND_AGAIN_S,
                most=limits.OVERDUE,
            )
        if not tries:
            return
        async with asyncio.timeout(limits.SEND_S):
            failures = await self._executor.reconcile(tries)
        if again := sum(failure.again for failure in failures.values()):
            observe(seen.sent_again(self.row.name, again), self._meter)
        await self._settle(failures)

    async def _settle(self, failures: Mapping[int, LaunchFailure]) -> None:
        """Handles failures. Those to be sent again are sent in the next turn."""
        alone_at = asyncio.get_running_loop().time() + limits.ALONE_S
        self._apart |= {epoch: alone_at for epoch, failure in failures.items() if failure.again and failure.alone}
        again = [epoch for epoch, failure in failures.items() if failure.again and not failure.alone]
        lost = {epoch: failure.reason for epoch, failure in failures.items() if not failure.again}
        if again:
            await self._ledger.send_again(again)
            self.news.set()
        if lost:
            await self._ledger.end(lost)
            observe(seen.ended_there(self.row.name, len(lost), next(iter(lost.values()))), self._meter)
