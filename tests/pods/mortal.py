"""A launcher in a process of its own that dies at a point, as by kill -9: ``mortal.py POINT DATABASE FOLDER CLUSTER API``."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from evenflow.killpoints import KillPoint, watch
from tests.pods.world import launcher_of, write_template


def die_at(fatal: KillPoint, passed: KillPoint) -> None:
    if passed is fatal:
        os.kill(os.getpid(), signal.SIGKILL)


async def run(database_url: str, folder: Path, cluster: str, api_url: str) -> None:
    service = launcher_of(database_url, folder, cluster, write_template(folder), api_url, "mortal")
    await service.start()
    raise await service.failed()


if __name__ == "__main__":
    point = KillPoint(sys.argv[1])
    watch(lambda passed: die_at(point, passed))
    asyncio.run(run(sys.argv[2], Path(sys.argv[3]), sys.argv[4], sys.argv[5]))
