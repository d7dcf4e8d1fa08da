"""What a look of an autoscaler at a large fleet costs: 1,000 workers with 16 tries each, 100,000 tries that wait, loop after loop.

Workers and tries are rows; all that an autoscaler does is real. ``decision_s`` is a whole loop: its lease, the fleets, the workers
and what each runs, what waits, the costs where somebody is to go, the decision, and the look that is kept.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import measure
from server import fresh_database, open_connection, serve

from evenflow.autoscaler.steering import Steering
from evenflow.autoscaler.target import HostTarget
from evenflow.core.meter import Meter
from evenflow.core.metrics import METRICS
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.core.scaling.policy import ScalingPolicy
from evenflow.core.service import ServiceKind
from evenflow.store.db.connect import connect_async
from tests.autoscaler.world import Fleets

CASE = "scaling_decision"
WORKERS, SLOTS, WAITING, LOOPS = 1_000, 16, 100_000, 100
TASKS = 20  # of the DAG that they are of
BAR_S = 0.2


def fill(fleets: Fleets, *, workers: int, waiting: int) -> None:
    """A fleet at its size, all of whose slots are taken."""
    policy = ScalingPolicy(min=0, max=workers, slots=SLOTS)
    fleets.fleet(policy)
    fleets.conn.execute("update fleet set replicas = %s", [workers])
    names = [f"f-{number}" for number in range(1, workers + 1)]
    ids = [fleets.worker(name, slots=SLOTS) for name in names]
    with fleets.conn.cursor() as cursor:
        cursor.executemany("insert into fleet_worker (fleet, name) values ('f', %s)", [(name,) for name in names])
    spec = DagSpec(dag_id="d", tasks=tuple(TaskSpec(task_id=f"t{i}", operator="python") for i in range(TASKS)))
    run = fleets.run(fleets.add_dag(spec))
    copy = (
        "copy dispatch (epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots, worker_id,"
        " claimed_at) from stdin"
    )
    with fleets.conn.cursor() as cursor, cursor.copy(copy) as rows:
        for number in range(workers * SLOTS + waiting):
            worker = ids[number // SLOTS] if number < workers * SLOTS else None
            claimed = "now" if worker else None
            rows.write_row((number + 1, run, number % TASKS, number, 1, 1, 1, "default", "{}", 1, worker, claimed))
    fleets.conn.execute("vacuum analyze")


async def loops(fleets: Fleets, number: int) -> list[float]:
    """Seconds that each took."""
    holder = fleets.service("autoscaler", "bench")
    steering = Steering(holder, {"native": HostTarget()}, Meter(ServiceKind.AUTOSCALER, "bench", METRICS))
    fleets.lapse()
    took = []
    async with await connect_async(fleets.url, name="bench") as conn:
        for _ in range(number):
            fleets.conn.execute("update service set beat_at = now() where kind = 'worker'")
            began = time.perf_counter()
            assert await steering.loop(conn)
            took.append(time.perf_counter() - began)
            if steering.memories["f"].look is None:
                raise RuntimeError("the fleet was not looked at")
    return took


def run(*, workers: int = WORKERS, waiting: int = WAITING, number: int = LOOPS, dsn: str | None = None) -> Iterator[dict[str, Any]]:
    with serve(dsn) as server:
        url = fresh_database(server, CASE)
        with open_connection(url, "bench") as conn:
            fleets = Fleets(conn, url)
            fill(fleets, workers=workers, waiting=waiting)
            busy = asyncio.run(loops(fleets, number))
            fleets.conn.execute("delete from dispatch where worker_id is null")
            fleets.conn.execute("delete from scaling_look")
            fleets.fleet(ScalingPolicy(min=0, max=workers // 2, slots=SLOTS, down_rate=1))
            shrinks = asyncio.run(loops(fleets, max(number // 10, 1)))
        yield {
            "ok": measure.quantiles(busy)["p99"] <= BAR_S,  # type: ignore[index]
            "workers": workers,
            "waiting": waiting,
            "decision_s": measure.quantiles(busy),
            "shrinking_s": measure.quantiles(shrinks),
        }
