"""An autoscaler dies by SIGKILL after every single step of a plan, and another one that stands by finishes or undoes it (R-AS3).

Each death has a database of its own, in which workers are rows, or pods of a cluster on this machine that have rows. Those of
Celery are processes, with a Redis and an API, and one fleet for all deaths, one after the other. ``restore_s`` is from the death
until no worker is fenced, no cost is told, no plan is open and the fleet has the size that it is to have. ``there_s`` is until all
of its workers take tries, too: a process of Celery takes some seconds of processor time until then.

As a program of its own it is the autoscaler that dies: ``autoscaler_steps.py URL FATAL TARGET CLUSTER``.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import measure
import psycopg
from celery_fleets import CeleryFleets, celery_fleets
from server import Server, fresh_database, open_connection, serve

from evenflow.autoscaler.limits import LOOP_S
from evenflow.autoscaler.steering import Steering
from evenflow.autoscaler.target import FleetTarget, HostTarget
from evenflow.core.limits import LEASE_S
from evenflow.core.meter import Meter
from evenflow.core.metrics import METRICS
from evenflow.core.service import ServiceKind
from evenflow.errors import NotActing
from evenflow.killpoints import KillPoint, watch
from evenflow.store.db.connect import AsyncConn, connect_async
from evenflow.store.db.failures import OUTAGES
from tests.autoscaler.pods import PodFleets, targets_of
from tests.autoscaler.world import EAGER, Fleets
from tests.kubernetes.cluster import Cluster, kubernetes

CASE = "autoscaler_steps"
TARGETS = ("native", "celery", "kubernetes")
SCENES = {"grow": 3, "shrink": 1}  # workers that there are to be; there are two
AT_ONCE = 6  # deaths
BAR_S = LEASE_S + LOOP_S
GIVEN_UP_S = 3 * LEASE_S
MOST_STEPS = 100


@dataclass(frozen=True, slots=True)
class Death:
    scene: str
    fatal: int  # the how manieth point it is
    happened: bool
    restored_s: float | None = None
    there_s: float | None = None


def targets(uri: str) -> dict[str, FleetTarget]:
    return {"native": HostTarget(), "celery": HostTarget(), **(targets_of(uri) if uri else {})}


async def _steer(fleets: Fleets, name: str, uri: str, until: float, is_done: Any) -> bool:
    """Loops as the service does, while workers come and go as they are told; whether it is done in time."""
    known = targets(uri)
    holder = await asyncio.to_thread(fleets.service, "autoscaler", name)
    steering = Steering(holder, known, Meter(ServiceKind.AUTOSCALER, name, METRICS))
    try:
        while time.monotonic() < until:
            with contextlib.suppress(*OUTAGES):  # a session that the server ends, as a cluster took too long, is begun anew
                async with await connect_async(fleets.url, name=name) as conn:
                    if await _loops(steering, conn, fleets, until, is_done):
                        return True
    finally:
        for target in known.values():
            await target.close()
    return False


async def _loops(steering: Steering, conn: AsyncConn, fleets: Fleets, until: float, is_done: Any) -> bool:
    while time.monotonic() < until:
        began = time.monotonic()
        with contextlib.suppress(NotActing):  # its lease was over before the loop was: it takes it again
            if await steering.loop(conn):
                await asyncio.to_thread(fleets.obey)
                if await asyncio.to_thread(is_done):
                    return True
        await asyncio.sleep(max(0.0, began + steering.rest_s - time.monotonic()))
    return False


def _is_restored(fleets: Fleets, size: int) -> bool:
    if isinstance(fleets, PodFleets):
        is_so = fleets.asked == size and len(fleets.pods()) == size and not fleets.costs()
    else:
        is_so = [leaving for _, leaving in fleets.native()] == [False] * size
    return is_so and fleets.replicas == size and not fleets.fenced() and not fleets.open_plans()


def _is_at_rest(fleets: Fleets, size: int) -> bool:
    return _is_restored(fleets, size) and (not isinstance(fleets, CeleryFleets) or fleets.running() == size)


def _prepare(fleets: Fleets, uri: str) -> None:
    """A fleet of two, and nobody acts."""
    if isinstance(fleets, PodFleets):
        fleets.deploy(2)
    fleets.fleet(replace(EAGER, min=2))
    if not asyncio.run(_steer(fleets, "before", uri, time.monotonic() + GIVEN_UP_S, lambda: _is_at_rest(fleets, 2))):
        raise RuntimeError(f"there are no two workers: {fleets.all('select * from scaling_step')}")
    fleets.lapse()


def _die(fleets: Fleets, scene: str, fatal: int, uri: str = "") -> Death:
    _prepare(fleets, uri)
    size = SCENES[scene]
    fleets.fleet(replace(EAGER, min=size))
    target = "celery" if isinstance(fleets, CeleryFleets) else "kubernetes" if uri else "native"
    victim = subprocess.run([sys.executable, __file__, fleets.url, str(fatal), target, uri], check=False, timeout=4 * GIVEN_UP_S)
    died_at = time.monotonic()
    if victim.returncode == 0:
        return Death(scene, fatal, False)
    if victim.returncode != -signal.SIGKILL:
        raise RuntimeError(f"the autoscaler that was to die ended with {victim.returncode}")
    restored_s: float | None = None

    def is_done() -> bool:
        nonlocal restored_s
        is_restored = _is_restored(fleets, size)
        restored_s = (restored_s or time.monotonic() - died_at) if is_restored else None
        return is_restored and _is_at_rest(fleets, size)

    there = asyncio.run(_steer(fleets, "after", uri, died_at + GIVEN_UP_S, is_done))
    there_s = time.monotonic() - died_at if there else None
    fleets.lapse()
    return Death(scene, fatal, True, restored_s, there_s)


def deaths(server: Server, cluster: Cluster | None, celery: CeleryFleets | None, scene: str, every: int) -> list[Death]:
    """One after each ``every``-th step, until one has none any more."""
    found: list[Death] = []

    def one(fatal: int) -> Death:
        if celery is not None:
            return _die(celery, scene, fatal)
        url = fresh_database(server, f"{CASE}_{scene}_{fatal}")
        with open_connection(url, "bench") as conn:
            if cluster is None:
                return _die(Fleets(conn, url), scene, fatal)
            return _die(PodFleets(conn, url, cluster=cluster, deployed=f"{scene}-{fatal}"), scene, fatal, cluster.uri)

    at_once = AT_ONCE if celery is None else 1
    with ThreadPoolExecutor(at_once) as threads:
        for first in range(1, MOST_STEPS, at_once * every):
            found += threads.map(one, range(first, first + at_once * every, every))
            if not all(death.happened for death in found):
                break
    return [death for death in found if death.happened]


def run(*, target: str, every: int = 1, dsn: str | None = None) -> Iterator[dict[str, Any]]:
    with ExitStack() as stack:
        server = stack.enter_context(serve(dsn))
        cluster = stack.enter_context(kubernetes()) if target == "kubernetes" else None
        celery = stack.enter_context(celery_fleets(fresh_database(server, CASE))) if target == "celery" else None
        found = [death for scene in SCENES for death in deaths(server, cluster, celery, scene, every)]
    restored = [death.restored_s for death in found if death.restored_s is not None]
    there = [death.there_s for death in found if death.there_s is not None]
    not_restored = [f"{death.scene} {death.fatal}" for death in found if death.there_s is None]
    yield {
        "ok": bool(restored) and not not_restored and max(restored) <= BAR_S,
        "target": target,
        "deaths": len(found),
        "not_restored": len(not_restored),
        "which": not_restored,
        "restore_s": measure.quantiles(restored, 2),
        "there_s": measure.quantiles(there, 2),
        "bar_s": BAR_S,
        "load": measure.load(),
    }


def victim(url: str, fatal: int, target: str, uri: str) -> int:
    """The autoscaler that dies; 0 when there are not so many points."""
    passed = 0

    def die(point: KillPoint) -> None:
        nonlocal passed
        passed += 1
        if passed == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    with psycopg.connect(url, autocommit=True) as conn:
        fleets = PodFleets(conn, url, cluster=None, deployed="") if uri else Fleets(conn, url)  # type: ignore[arg-type]
        fleets.obey = fleets.obey if target == "native" else (lambda: None)  # type: ignore[method-assign]
        watch(die)
        asyncio.run(_steer(fleets, "victim", uri, time.monotonic() + GIVEN_UP_S, lambda: not fleets.open_plans() and passed))
    return 0


if __name__ == "__main__":
    sys.exit(victim(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
