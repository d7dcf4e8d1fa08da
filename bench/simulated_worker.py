"""A worker that executes nothing: claims and reports through the functions of a real one, holds each try as long as the shape says.

Whenever it has ended as many as it was told it prints a line of JSON: per finished try (group, run_key, task_index, map_index,
claimed, ended), seconds since 1970. It runs until it is terminated.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import json
import sys
import time
from typing import Any

import uvloop

from evenflow.store import dispatch, services
from evenflow.store.connect import connect_async
from evenflow.store.notify import DISPATCH, AsyncListener

BATCH = 500
SLOTS = 10_000  # tries that it holds at once; pools and caps are what limits


class SimulatedWorker:
    def __init__(self, url: str, total: int, hold_s: dict[str, float]) -> None:
        self._url, self._total, self._hold_s = url, total, hold_s
        self._wake = asyncio.Event()
        self._running: list[tuple[float, int, tuple[Any, ...]]] = []
        self.done: list[tuple[Any, ...]] = []

    async def run(self) -> None:
        conn = await connect_async(self._url, name="simulated worker")
        worker = await services.register(conn, kind="worker", name="simulated", host="bench", pid=0, version="0", detail={})
        listener = AsyncListener(self._url, [DISPATCH], lambda _: self._wake.set(), name="simulated worker")
        await listener.start()
        print("ready", flush=True)
        key, beat = 0, time.monotonic()
        while True:
            self._wake.clear()
            claimed = 0
            if len(self._running) < SLOTS:
                key += 1
                slots = min(BATCH, SLOTS - len(self._running))
                answer = await dispatch.claim(
                    conn, service_id=worker, claim_key=str(key), slots=slots, queues=["default"], lease_s=60
                )
                claimed = len(answer.tries)
                self._begin(answer.tries)
            ended = await self._end(conn)
            if not claimed and not ended:
                await self._idle()
            if time.monotonic() - beat > 3:
                beat = time.monotonic()
                await services.beat(conn, service_id=worker, kind="worker")
            if len(self.done) >= self._total:
                print(json.dumps(self.done), flush=True)
                self.done.clear()

    def _begin(self, tries: list[dispatch.ClaimedTry]) -> None:
        now = time.time()
        for t in tries:
            group = t.dag_id.rsplit("_", 1)[0]
            end = now + self._hold_s.get(group, 0.0)
            heapq.heappush(self._running, (end, t.epoch, (group, t.run_key, t.task_index, t.map_index, now)))

    async def _end(self, conn: dispatch.Conn) -> int:
        """Reports the tries whose time has come; answers how many."""
        now, reports = time.time(), []
        while self._running and self._running[0][0] <= now and len(reports) < BATCH:
            _, epoch, about = heapq.heappop(self._running)
            _, run_key, task_index, map_index, claimed = about
            reports.append(
                f'{{"run_key":{run_key},"task_index":{task_index},"map_index":{map_index},"epoch":{epoch},"kind":"exit","age_s":0,'
                f'"payload":{{"outcome":"success","ran_s":{now - claimed:.6f}}}}}'
            )
            self.done.append((*about, now))
        if reports:
            await dispatch.insert_reports(conn, f"[{','.join(reports)}]")
        return len(reports)

    async def _idle(self) -> None:
        timeout = max(0.0, self._running[0][0] - time.time()) if self._running else 1.0
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), timeout)


async def main() -> None:
    url, total, hold_s = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    await SimulatedWorker(url, total, hold_s).run()


uvloop.run(main())
