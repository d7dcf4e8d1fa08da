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
import itertools
import json
import sys
import time
from typing import Any, Protocol

import uvloop

from evenflow.core.model import UNMAPPED
from evenflow.core.selection.order import DispatchClass
from evenflow.store.db.connect import AsyncConn, connect_async
from evenflow.store.db.notify import DISPATCH, AsyncListener
from evenflow.store.serving import dispatch, services

BATCH = 500

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
    """Its claims wait as those at an API server do, while tries begin and end."""

    def __init__(self, url: str, hold_s: dict[str, float], ledger: Ledger, name: str) -> None:
        self._url, self._hold_s, self._ledger, self._name = url, hold_s, ledger, name
        self._wake, self._news, self._answered = asyncio.Event(), asyncio.Event(), False
        self._running: list[tuple[float, int, About]] = []
        self._known = dispatch.KnownRuns()
        self._worker, self._key = 0, ""

    async def run(self, ready: asyncio.Barrier) -> None:
        conn = await self._connect()
        about: dict[str, Any] = {"name": self._name, "host": "bench", "pid": 0, "version": "0", "detail": {}}
        self._worker = await services.register(conn, kind="worker", **about)
        server = await services.register(conn, kind="api", **about)
        listener = AsyncListener(self._url, [DISPATCH], self._heard, lambda _: None, name="simulated worker")
        await listener.start()
        if await ready.wait() == 0:
            print("ready", flush=True)
        beat = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._claim(server))
            while True:
                self._wake.clear()
                if not await self._end(conn):
                    await self._idle()
                if time.monotonic() - beat > 3:
                    beat = time.monotonic()
                    await services.beat(conn, service_id=self._worker, kind="worker")
                    await services.beat(conn, service_id=server, kind="api")

    async def _connect(self) -> AsyncConn:
        return await connect_async(self._url, name="simulated worker", generic_plans=True)

    async def _claim(self, server: int) -> None:
        """One claim after the other, each of which waits until there is something."""
        conn = await self._connect()
        for number in itertools.count():
            self._key, self._answered = f"{self._name} {number}", False
            while not self._answered:
                self._news.clear()
                answer = await dispatch.claim(
                    conn,
                    service_id=self._worker,
                    claim_key=self._key,
                    slots=BATCH,
                    resumes=BATCH,
                    queues=["default"],
                    lease_s=60,
                    known=self._known,
                    api=server,
                )
                if answer.tries:
                    self._begin(answer.tries)
                elif not self._answered:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._news.wait(), 1.0)

    def _heard(self, channel: str, word: str) -> None:
        """A turn has started something, or has given this worker something."""
        said = json.loads(word) if word else {}
        if said and (said["worker"], said["key"]) != (self._worker, self._key):
            return
        if "tries" in said and said["tries"] is not None and all(self._known.get(run_key) for _, run_key, _, _ in said["tries"]):
            given = [
                (epoch, run_key, task, UNMAPPED, number, None, DispatchClass.FIRST_START)
                for epoch, run_key, task, number in said["tries"]
            ]
            self._begin([dispatch.ClaimedTry(*about, *(self._known.get(about[1]) or ())) for about in given])
        self._news.set()

    def _begin(self, tries: list[dispatch.ClaimedTry]) -> None:
        """The claim is answered."""
        if self._answered:
            return
        self._answered = True
        self._wake.set()
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
