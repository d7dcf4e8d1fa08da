"""A launcher of pods on a real database and API, beside a cluster whose pods are processes that run ``evenflow worker --try``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evenflow.api.service import ApiService
from evenflow.launcher.service import LauncherService
from tests.kubernetes.cluster import Cluster, kubernetes
from tests.pods.world import PodWorld, StartLauncher, launcher_of, pods_told, write_template


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with kubernetes() as found:
        yield found
        print(*pods_told(found), sep="\n")  # of a test that fails


@pytest.fixture
def world(api: ApiService, db: psycopg.Connection[Any], tmp_path: Path) -> PodWorld:
    return PodWorld(db, tmp_path / "logs")


@pytest.fixture
async def start_launcher(api: ApiService, cluster: Cluster, database_url: str, tmp_path: Path) -> AsyncIterator[StartLauncher]:
    """Starts launchers; those that a test has not stopped are stopped after it."""
    template = write_template(tmp_path)
    async with AsyncExitStack() as stack:

        async def start(name: str = "launcher") -> LauncherService:
            service = launcher_of(database_url, tmp_path, cluster.uri, template, f"http://127.0.0.1:{api.port}", name)
            await service.start()
            stack.push_async_callback(service.stop)
            return service

        yield start


@pytest.fixture
async def launcher(start_launcher: StartLauncher) -> LauncherService:
    return await start_launcher()
