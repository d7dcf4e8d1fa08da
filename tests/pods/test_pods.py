"""A pod for each try, holding the token of this try and no other (R-EX1, R-EX2, R-SE2)."""

from __future__ import annotations

import pytest

from evenflow.launcher.service import LauncherService
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.store import SECRET
from tests.pods.world import PodWorld, of_epoch
from tests.waiting import until

pytestmark = pytest.mark.system


async def test_a_try_runs_in_a_pod_of_its_own(world: PodWorld, cluster: Cluster, launcher: LauncherService) -> None:
    """R-EX1, R-EX3: code, log and result travel by the API; the pod goes when its try is over, and its secret with it."""
    world.executor()
    epoch = world.pod("print('hello from the pod')\nreturn 41 + 1")
    end = await world.exit_of(epoch)
    assert end["outcome"] == "success"
    await world.logged(epoch, "hello from the pod")
    assert len(of_epoch(cluster, epoch)) == 1
    world.over(epoch)
    await until(lambda: not cluster.objects() and not cluster.objects(SECRET))
