"""A worker that executes nothing: claims and reports through the functions of a real one, holds each try as long as the shape says.

    simulated_worker.py URL HOLD_S WORKERS tries TOTAL [GROUP]
    simulated_worker.py URL HOLD_S WORKERS counts EVERY

It is so many workers, each of which waits for its own answers alone, as connections of API servers do. ``tries``: whenever TOTAL
tries (of GROUP) have ended it prints a line of JSON: per ended try (group, run_key, task_index, map_index, claimed, ended), seconds
since 1970. ``counts``: whenever EVERY more tries have ended it prints how many have, and when that was. It runs until it is
terminated.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import json
import sys
import time
from typing import Protocol

import uvloop

from evenflow.store.db.connect import AsyncConn, connect_async
from evenflow.store.db.notify import DISPATCH, AsyncListener
from evenflow.store.serving import dispatch, services

BATCH = 500
SLOTS = 200_000  # tries that it holds at once; pools and caps are what limits

About = tuple[str, int, int, int, float]  # group, run_key, task_index, map_index, claimed


class Ledger(Protocol):
    """What is said of the tries that have ended."""

    def add(self, about: About, ended: float) -> None: ...


class Tries:
    def __init__(self, total: int, group: str | None) -> None:
        self._total, self._group = total, group
        self._done: list[tuple[str, int, int, int, float, float]] = []
        self._counted = 0

    def add(self, about: About, ended: float) -> None:
        self._done.append((*about, ended))
        self._counted += self._group in (None, about[0])
        if self._counted == self._total:
            print(json.dumps(self._done), flush=True)
            self._done.clear()
            self._counted = 0


class Counts:
    def __init__(self, every: int) -> None:
        self._every, self._counted = every, 0

    def add(self, about: About, ended: float) -> None:
        self._counted += 1
        if self._counted % self._every == 0:
            print(json.dumps([self._counted, ended]), flush=True)


class SimulatedWorker:
    def __init__(self, url: str, hold_s: dict[str, float], ledger: Ledger, name: str) -> None:
        self._url, self._hold_s, self._ledger, self._name = url, hold_s, ledger, name
        self._wake = asyncio.Event()
        self._running: list[tuple[float, int, About]] = []

    async def run(self, ready: asyncio.Barrier) -> None:
        conn = await connect_async(self._url, name="simulated worker", generic_plans=True)
        worker = await services.register(conn, kind="worker", name=self._name, host="bench", pid=0, version="0", detail={})
        listener = AsyncListener(self._url, [DISPATCH], lambda _: self._wake.set(), lambda _: None, name="simulated worker")
        await listener.start()
        if await ready.wait() == 0:
            print("ready", flush=True)
        key, beat, known = 0, time.monotonic(), dispatch.KnownRuns()
        while True:
            self._wake.clear()
            claimed = 0
            if len(self._running) < SLOTS:
                key += 1
                slots = min(BATCH, SLOTS - len(self._running))
                answer = await dispatch.claim(
                    conn,
                    service_id=worker,
                    claim_key=str(key),
                    slots=slots,
                    resumes=slots,
                    queues=["default"],
                    lease_s=60,
                    known=known,
                )
                claimed = len(answer.tries)
                self._begin(answer.tries)
            ended = await self._end(conn)
            if not claimed and not ended:
                await self._idle()
            if time.monotonic() - beat > 3:
                beat = time.monotonic()
                await services.beat(conn, service_id=worker, kind="worker")

    def _begin(self, tries: list[dispatch.ClaimedTry]) -> None:
        now = time.time()
        for t in tries:
            group = t.dag_id.rsplit("_", 1)[0]
            end = now + self._hold_s.get(group, 0.0)
            heapq.heappush(self._running, (end, t.epoch, (group, t.run_key, t.task_index, t.map_index, now)))

    async def _end(self, conn: AsyncConn) -> int:
        """Reports the tries whose time has come; answers how many."""
        now = time.time()
        reports: list[str] = []
        ended: list[About] = []
        while self._running and self._running[0][0] <= now and len(reports) < BATCH:
            _, epoch, about = heapq.heappop(self._running)
            _, run_key, task_index, map_index, claimed = about
            reports.append(
                f'{{"run_key":{run_key},"task_index":{task_index},"map_index":{map_index},"epoch":{epoch},"kind":"exit","age_s":0,'
                f'"payload":{{"outcome":"success","ran_s":{now - claimed:.6f}}}}}'
            )
            ended.append(about)
        if reports:
            await dispatch.insert_reports(conn, f"[{','.join(reports)}]")
            for about in ended:
                self._ledger.add(about, now)
        return len(reports)

    async def _idle(self) -> None:
        timeout = max(0.0, self._running[0][0] - time.time()) if self._running else 1.0
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), min(timeout, 1.0))


async def main() -> None:
    url, hold_s, workers, kind, number, *group = sys.argv[1:]
    ledger: Ledger = Tries(int(number), group[0] if group else None) if kind == "tries" else Counts(int(number))
    ready = asyncio.Barrier(int(workers))
    async with asyncio.TaskGroup() as tasks:
        for n in range(int(workers)):
            tasks.create_task(SimulatedWorker(url, json.loads(hold_s), ledger, f"simulated-{n}").run(ready))


uvloop.run(main())
