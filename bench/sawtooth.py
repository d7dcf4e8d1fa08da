"""Many short tasks while their fleet is cut from many workers to few and made large again, over and over (R-AS6).

``native``: ``evenflow up --autoscale``, whose workers are processes of this machine. ``celery``: the same, with workers of Celery
and a Redis. ``kubernetes``: a Deployment of a cluster on this machine, whose pods are such processes, and an autoscaler beside it.
All is real but for the cluster. A try that was lost, or needed another one, would be one that the autoscaler has ended.

A fleet that takes long to grow may have done the tasks before its first cut. So another run of them is triggered whenever less than
half a run is left and no cut is over.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import specs
from on_celery import redis, set_executor
from real import Evenflow, times_of, until
from server import fresh_database, open_connection, serve
from services import service, token
from shapes import Shape

from evenflow.client.rest import RestClient
from tests.kubernetes.cluster import Cluster, kubernetes
from tests.kubernetes.store import DEPLOYMENT

CASE = "sawtooth"
TARGETS = ("native", "celery", "kubernetes")
TASKS, SLEEP_S, MANY, FEW, SLOTS = 10_000, 0.05, 20, 2, 2
TURN_S = 8.0  # from one end to the other; then it waits until the fleet is there
AS_IT_COMES = {"up_after": 0, "down_after": 0, "up_rate": 1000, "down_rate": 1000, "target_load": 0.9, "down_load": 0.89}
DEPLOYED = "workers"
FOUND = """
select count(*) filter (where state = 'success') as done, count(*) filter (where losses > 0) as evicted,
       count(*) filter (where try_number > 1) as retried
from task_instance
"""


def _cuts(sizes: list[int]) -> int:
    return sum(after < before for before, after in itertools.pairwise(sizes))


async def _turns(api: RestClient, fleet: str, options: dict[str, Any], many: int, sizes: list[int], is_over: Any) -> None:
    """Cuts and grows until all is done; adds to the sizes how many workers were ready after each turn."""

    async def bounds(size: int) -> None:
        policy = {"min": size, "max": size, "slots": SLOTS, **AS_IT_COMES}
        await api.set_fleet(fleet, queues=["default"], policy=policy, **options)

        async def there() -> bool:
            ready = sum(worker.is_ready and worker.mark != "leaving" for worker in (await api.get_fleet(fleet)).workers)
            return (ready >= size if size == many else ready <= size) or await is_over()

        turned_at = time.monotonic()
        await until(there, every_s=0.5)
        sizes.append(sum(worker.is_ready for worker in (await api.get_fleet(fleet)).workers))

        async def turned() -> bool:
            return time.monotonic() > turned_at + TURN_S or await is_over()

        await until(turned, every_s=0.5)

    while not await is_over():
        await bounds(many)
        if not await is_over():
            await bounds(FEW)


async def _play(
    evenflow: Evenflow, conn: Any, dag_id: str, tasks: int, many: int, fleet: str, options: dict[str, Any]
) -> dict[str, Any]:
    sizes: list[int] = []
    given = 0
    async with RestClient(evenflow.api_url, evenflow.token) as api:

        async def parsed() -> bool:
            return bool((await api.list_dags(limit=10)).items)

        async def give() -> None:
            nonlocal given
            await api.trigger_run(dag_id, run_id=f"r{given}")
            given += tasks

        async def over() -> bool:
            if not _cuts(sizes) and given - conn.execute(FOUND).fetchone()[0] < tasks / 2:
                await give()
            return all(run.state in ("success", "failed") for run in (await api.list_runs(limit=1000)).items)

        await until(parsed)
        for name, slots in specs.pools({}).items():
            await api.set_pool(name, slots=slots)
        began = time.monotonic()
        await give()
        await _turns(api, fleet, options, many, sizes, over)
        total_s = time.monotonic() - began
        steps = [step.step for step in (await api.list_fleet_steps(fleet, limit=1000)).items]
        done, evicted, retried = conn.execute(FOUND).fetchone()
    return {
        "tasks": given,
        "done": done,
        "evicted": evicted,
        "retried": retried,
        "cuts": _cuts(sizes),
        "shrink_plans": steps.count("choose"),
        "total_s": round(total_s, 1),
        "sizes": sizes,
    }


def _deployment(evenflow: Evenflow, worker_token: str, home: Path) -> dict[str, Any]:
    said = {
        "PATH": os.environ["PATH"],
        "EVENFLOW_API_URL": evenflow.api_url,
        "EVENFLOW_TOKEN": worker_token,
        "EVENFLOW_HOME": str(home),
        "EVENFLOW_SLOTS": str(SLOTS),
        "EVENFLOW_LOG_LEVEL": "warning",
    }
    env: list[dict[str, Any]] = [{"name": name, "value": value} for name, value in said.items()]
    env.append({"name": "EVENFLOW_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}})
    container = {"name": "worker", "image": "evenflow", "command": [sys.executable, "-m", "evenflow", "worker"], "env": env}
    labels = {"app": DEPLOYED}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 60}
    return {
        "metadata": {"name": DEPLOYED},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def _on_kubernetes(stack: ExitStack, evenflow: Evenflow, environment: dict[str, str], home: Path) -> dict[str, Any]:
    """The options of a fleet that an autoscaler looks after from now on."""
    cluster: Cluster = stack.enter_context(kubernetes())
    (home / "pods").mkdir()
    cluster.create(DEPLOYMENT, _deployment(evenflow, token("worker", environment), home / "pods"))
    stack.enter_context(service("autoscaler", {**environment, "EVENFLOW_KUBERNETES": cluster.uri}))
    return {"target": "kubernetes", "options": {"deployment": DEPLOYED}}


def run(*, target: str, tasks: int = TASKS, many: int = MANY, dsn: str | None = None) -> Iterator[dict[str, Any]]:
    shape: Shape = {"groups": [{"name": "tooth", "dags": 1, "graph": "mapped", "n": tasks, "body": "sleep", "sleep_s": SLEEP_S}]}
    with ExitStack() as stack:
        server = stack.enter_context(serve(dsn))
        url = fresh_database(server, CASE)
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="evenflow-bench-")))
        home.chmod(0o755)
        environment = {**os.environ, "EVENFLOW_DATABASE_URL": url, "EVENFLOW_HOME": str(home / "state")}
        told = () if target == "kubernetes" else ("--autoscale", f"0..{many}", "--autoscale-target", target)
        options = ("--workers", "0", *told)
        here = {"EVENFLOW_DATABASE_URL": url}
        if target == "celery":
            here["EVENFLOW_CELERY_BROKER"] = stack.enter_context(redis(home))
        dag_file = specs.dag_file(shape, specs.writes_times(str(times_of(home))))
        evenflow = Evenflow(home, dag_file, options=options, slots=SLOTS, environ=here)
        stack.callback(evenflow.stop)
        conn = stack.enter_context(open_connection(url, "bench"))
        if target == "kubernetes":
            fleet, of_fleet = "saw", _on_kubernetes(stack, evenflow, environment, home)
        else:
            [(fleet,)] = conn.execute("select name from fleet").fetchall()
            of_fleet = {"target": target}
        if target == "celery":
            asyncio.run(set_executor(evenflow.api_url, evenflow.token, slots=many * SLOTS))
        dag_id = specs.plan(shape)[0].spec.dag_id
        result = asyncio.run(_play(evenflow, conn, dag_id, tasks, many, fleet, of_fleet))
    ok = result["done"] == result["tasks"] and not result["evicted"] and not result["retried"] and result["cuts"] > 0
    yield {"ok": ok, "target": target, "load": round(psutil.getloadavg()[0], 1), **result}
