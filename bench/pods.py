"""pods: 1,000 tries of a Kubernetes executor, beside an API whose pods are no processes: they claim and report at once.

Scheduler and launcher are real processes, and so is PostgreSQL. ``pods_per_s`` counts from the trigger until the last pod is
deleted; ``cpu_s_per_pod`` is of the scheduler and the launcher together. What a pod itself costs is not in it. ``beside_cpu_s``
is of what runs on the same processors: the API with what claims there, and PostgreSQL. ``waited_s`` is for how long scheduler and
launcher were to run and had no processor.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import measure
import psycopg
from pod_api import QUEUE, PodApi
from server import Server, fresh_database, open_connection, serve
from services import environment, service, token
from shapes import Shape
from stored_shape import store_shape, trigger

from evenflow.core.executors import KUBERNETES
from evenflow.store.db.connect import UNBOUNDED, connect_async
from evenflow.store.serving import executors

CASE = "pods"
TASKS = 1_000
REQUESTS_PER_S = "2000"  # what is measured is not the pace that launchers keep
DEADLINE_S = 300.0
SHAPE: Shape = {"groups": [{"name": "wide", "dags": 1, "graph": "parallel", "n": TASKS, "body": "noop", "runs": 1}], "pools": {}}


def run(*, runs: int, dsn: str | None) -> Iterator[dict[str, Any]]:
    with serve(dsn) as server, tempfile.TemporaryDirectory(prefix="evenflow-bench-pods-") as folder:
        home = Path(folder)
        (home / "dags").mkdir()
        url = fresh_database(server, "bench")
        yield from asyncio.run(_measured(server, url, home, runs))


async def _measured(server: Server, url: str, home: Path, runs: int) -> list[dict[str, Any]]:
    plans = await store_shape(url, SHAPE)
    async with await connect_async(url, name="bench", timeouts=UNBOUNDED) as conn:
        await conn.execute("update concurrency_limit set capacity = 1000000 where kind = 'pool'")
        told: dict[str, Any] = {"kind": KUBERNETES, "queues": [QUEUE], "slots": 1_000_000, "by": "bench"}
        await executors.set_executor(conn, name="k8s", options={"image": "i", "requests_per_s": REQUESTS_PER_S}, **told)
    api = PodApi(url)
    port = await api.start()
    given = {**environment(home, home / "dags", url), "EVENFLOW_KUBERNETES": f"kubernetes://127.0.0.1:{port}/?tls=off"}
    await asyncio.to_thread(token, "worker", given)  # which makes the keys that tokens are signed with
    with (
        service("scheduler", given) as scheduler,
        service("launcher", {**given, "EVENFLOW_API_URL": f"http://127.0.0.1:{port}"}) as launcher,
    ):
        pids = {"scheduler": scheduler.pid, "launcher": launcher.pid}
        try:
            with open_connection(url, "bench") as conn:
                await _until(lambda: _services(conn) == 2)
                return [
                    await _once(conn, api, {dag: plan.runs for dag, plan in plans.items()}, repeat, pids, server)
                    for repeat in range(runs)
                ]
        finally:
            await api.stop()


async def _once(
    conn: psycopg.Connection[Any], api: PodApi, dags: dict[str, int], repeat: int, pids: dict[str, int], server: Server
) -> dict[str, Any]:
    made, deleted, claimed = api.made, api.deleted, api.claimed
    before, beside, waited = _cpu_s(pids), _beside(server), {name: _waited_s(pid) for name, pid in pids.items()}
    began = trigger(conn, dags, f"bench_{repeat}_")
    await _until(lambda: api.deleted - deleted >= TASKS)
    gone_s = time.time() - began
    await _until(lambda: conn.execute("select count(*) from dag_run where ended_at is null").fetchone() == (0,))
    cpu = {name: round(seconds - before[name], 3) for name, seconds in _cpu_s(pids).items()}
    beside = {name: round(seconds - beside[name], 3) for name, seconds in _beside(server).items()}
    waited = {name: round(_waited_s(pid) - waited[name], 1) for name, pid in pids.items()}
    states = dict(conn.execute("select state::text, count(*) from task_instance group by 1").fetchall())
    once = (api.made - made, api.claimed - claimed, api.deleted - deleted) == (TASKS, TASKS, TASKS)
    return {
        "ok": once and states == {"success": TASKS * (repeat + 1)} and api.twice == 0 and api.pods == 0,
        "cold": repeat == 0,
        "load": measure.load(),
        "pods": TASKS,
        "total_s": round(gone_s, 3),
        "pods_per_s": round(TASKS / gone_s, 1),
        "cpu_s": cpu,
        "beside_cpu_s": beside,
        "waited_s": waited,
        "cpu_s_per_pod": round(sum(cpu.values()) / TASKS, 5),
    }


def _cpu_s(pids: dict[str, int]) -> dict[str, float]:
    return {name: measure.cpu_s(measure.tree(pid)) for name, pid in pids.items()}


def _beside(server: Server) -> dict[str, float]:
    own = os.times()
    return {"api": own.user + own.system, "postgres": measure.cpu_s(server.processes())}


def _waited_s(pid: int) -> float:
    """Of all its threads that live, as Linux accounts for it."""
    return sum(int((task / "schedstat").read_text().split()[1]) for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9


def _services(conn: psycopg.Connection[Any]) -> int:
    row = conn.execute("select count(*) from service where kind in ('scheduler', 'launcher') and state = 'active'").fetchone()
    assert row is not None
    return int(row[0])


async def _until(condition: Any) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"{CASE}: not after {DEADLINE_S:g} s")
        await asyncio.sleep(0.05)
