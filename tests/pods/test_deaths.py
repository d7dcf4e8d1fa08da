"""A launcher is killed after each of its steps; another one finds what it has left (R-EX2)."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from evenflow.api.service import ApiService
from evenflow.killpoints import KillPoint
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.store import SECRET
from tests.pods.world import PodWorld, StartLauncher, of_epoch
from tests.waiting import until

POINTS = [KillPoint.POD_MADE, KillPoint.POD_EQUIPPED, KillPoint.POD_TOLD]
pytestmark = pytest.mark.system


def test_these_are_all() -> None:
    assert set(POINTS) == {point for point in KillPoint if point.startswith("launcher-")}


@pytest.mark.parametrize("point", POINTS)
async def test_a_launcher_that_dies_leaves_nothing_undone(
    world: PodWorld,
    cluster: Cluster,
    api: ApiService,
    database_url: str,
    tmp_path: Path,
    start_launcher: StartLauncher,
    point: KillPoint,
) -> None:
    """R-EX2: one pod of the try, whoever made it, with its secret; its end is told once; then nothing is left."""
    fails = point is KillPoint.POD_TOLD
    if fails:
        cluster.images.missing.add("evenflow")
    world.executor(on_image="fail after 0")
    epoch = world.pod("print('done')")
    program = str(Path(__file__).with_name("mortal.py"))
    told = [point, database_url, str(tmp_path), cluster.uri, f"http://127.0.0.1:{api.port}"]
    mortal = await asyncio.create_subprocess_exec(sys.executable, program, *told)
    assert await mortal.wait() == -signal.SIGKILL
    (left,) = of_epoch(cluster, epoch)
    assert len(cluster.objects(SECRET)) == (point is not KillPoint.POD_MADE)
    await start_launcher("successor")
    end = await world.exit_of(epoch)
    assert end["outcome"] == ("failed" if fails else "success")
    assert [pod["metadata"]["uid"] for pod in of_epoch(cluster, epoch)] in ([left["metadata"]["uid"]], [])
    world.over(epoch)
    await until(lambda: not cluster.objects() and not cluster.objects(SECRET))
    assert len(world.exits(epoch)) == 1
