"""report_storm: a hundred workers, each of which ends ten tries a second; API server, scheduler and PostgreSQL are real.

The workers are simulated, in one process: they register, beat, claim and report through the execution API, the latter by the
report queue of a real worker. All tries are claimed before; each ends at its moment then, whatever became of the others.
``report_s`` is from the end of a try until its worker knows that it is stored, ``cpu_us_per_try`` what it costs until the
last one is applied.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import measure
import psycopg
import uvloop
from server import Server, fresh_database, open_connection, serve
from services import environment, service, token, until, until_listening
from stored_shape import store_shape, trigger

from evenflow.client.execution import ExecutionClient
from evenflow.core.ending import Ending
from evenflow.core.limits import BEAT_S
from evenflow.wire import messages as m
from evenflow.worker.reporter import Reporter

CASE = "report_storm"
WORKERS = 100
RATE = 10  # tries that each ends a second
SECONDS = 20
TRIES = RATE * SECONDS  # of each
SHAPE = {"groups": [{"name": "storm", "dags": WORKERS, "graph": "mapped", "n": TRIES, "body": "noop"}]}
ENDED = "select count(*) from task_instance where state = 'success'"


class Worker:
    """One that executes nothing."""

    def __init__(self, api_url: str, token: str, number: int) -> None:
        self._api, self._number = ExecutionClient(api_url, token), number
        self._reporter = Reporter(self._api, self._stored)
        self._tokens: dict[int, str] = {}
        self._ended: dict[int, float] = {}
        self.report_s: list[float] = []

    async def claim_all(self) -> None:
        """What there is for it in the storm."""
        about = m.Register(kind="worker", name=f"storm-{self._number}", host="bench", pid=0, version="0", detail={})
        self._service_id = (await self._api.register(about)).service_id
        self._loops = [asyncio.create_task(self._beat()), asyncio.create_task(self._reporter.run())]
        while (slots := TRIES - len(self._tokens)) > 0:
            claim = m.Claim(
                service_id=self._service_id, request_key=f"{slots}", slots=slots, resume_slots=0, queues=["default"], wait_s=20.0
            )
            self._tokens.update({given.epoch: given.token for given in (await self._api.claim(claim)).assignments})

    async def storm(self, begin: float, chance: random.Random) -> None:
        """``begin``: by the clock of the loop. Returns when all that it has said is stored."""
        loop = asyncio.get_running_loop()
        moments = sorted(chance.uniform(begin, begin + SECONDS) for _ in self._tokens)
        for (epoch, bearer), moment in zip(list(self._tokens.items()), moments, strict=True):
            loop.call_at(moment, self._end, epoch, bearer, moment)
        await asyncio.sleep(begin + SECONDS - loop.time())
        await self._reporter.delivered()

    async def close(self) -> None:
        for task in self._loops:
            task.cancel()
        await self._api.close()

    def _end(self, epoch: int, token: str, moment: float) -> None:
        self._ended[epoch] = moment
        self._reporter.exited(epoch, m.Report(token=token, ending=Ending(outcome="success", ran_s=1.0)))

    def _stored(self, epoch: int) -> None:
        self.report_s.append(asyncio.get_running_loop().time() - self._ended.pop(epoch))
        del self._tokens[epoch]

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            await self._api.beat(self._service_id, m.Beat(epochs=list(self._tokens), starting=[]))


def run(*, runs: int, dsn: str | None) -> Iterator[dict[str, Any]]:
    with ExitStack() as stack:
        server = stack.enter_context(serve(dsn))
        for _ in range(runs):
            yield _measure(server)


def _measure(server: Server) -> dict[str, Any]:
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="evenflow-bench-")))
        url = fresh_database(server, "storm")
        plans = asyncio.run(store_shape(url, SHAPE))
        settings = environment(home, home / "dags", url)
        pids = {"api": stack.enter_context(service("api", settings)).pid}
        until_listening(int(settings["EVENFLOW_API_PORT"]))
        pids["scheduler"] = stack.enter_context(service("scheduler", settings)).pid
        conn = stack.enter_context(open_connection(url, "bench"))
        trigger(conn, dict.fromkeys(plans, 1), "storm_")
        conn.execute("analyze")
        return uvloop.run(_storm(server, conn, settings["EVENFLOW_API_URL"], token("worker", settings), pids))


async def _storm(server: Server, conn: psycopg.Connection[Any], api_url: str, token: str, pids: dict[str, int]) -> dict[str, Any]:
    workers = [Worker(api_url, token, number) for number in range(WORKERS)]
    await asyncio.gather(*(worker.claim_all() for worker in workers))
    chance = random.Random(1)

    def used() -> dict[str, float]:
        cpu = {name: measure.cpu_s(measure.tree(pid)) for name, pid in pids.items()}
        return {**cpu, "postgres": measure.cpu_s(server.processes()), "workers": time.process_time()}

    before, wal, commits = used(), measure.wal_bytes(conn), measure.commits(conn)
    begin = asyncio.get_running_loop().time() + 0.5
    await asyncio.gather(*(worker.storm(begin, chance) for worker in workers))
    took_s = asyncio.get_running_loop().time() - begin
    total = WORKERS * TRIES
    await asyncio.to_thread(until, conn, ENDED, lambda ended: ended == total)
    after = used()
    report_s = [seconds for worker in workers for seconds in worker.report_s]
    result = {
        "ok": len(report_s) == total and conn.execute("select count(*) from report").fetchone() == (0,),
        "tries": total,
        "tries_per_s": round(total / took_s),
        "report_s": measure.quantiles(report_s),
        "cpu_us_per_try": {name: round(1e6 * (after[name] - before[name]) / total) for name in after},
        "wal_bytes_per_try": round((measure.wal_bytes(conn) - wal) / total),
        "commits_per_try": round((measure.commits(conn) - commits) / total, 3),
        "load": measure.load(),
    }
    await asyncio.gather(*(worker.close() for worker in workers))
    return result
