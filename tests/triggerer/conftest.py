"""A real API on a real database, and real triggerers with real processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evenflow.api.service import ApiService
from evenflow.membership.service import Member
from evenflow.triggerer.service import TriggererService
from tests.tokens import fleet_token
from tests.triggerer.world import World

StartTriggerer = Callable[..., Awaitable[TriggererService]]


@pytest.fixture(autouse=True)
def _quick_beats(quick_beats: None) -> None: ...


@pytest.fixture
def world(api: ApiService, db: psycopg.Connection[Any], tmp_path: Path) -> World:
    return World(db, tmp_path / "logs", api._vault)


@pytest.fixture
async def start_triggerer(api: ApiService, world: World, tmp_path: Path) -> AsyncIterator[StartTriggerer]:
    """Starts triggerers; they are stopped after the test."""
    token = fleet_token(world.conn, "triggerer")
    async with AsyncExitStack() as stack:

        async def start(
            *, name: str = "t", capacity: int = 1000, queues: tuple[str, ...] = (), home: str = "home"
        ) -> TriggererService:
            service = TriggererService(
                Member(name=name, api_url=f"http://127.0.0.1:{api.port}", token=token, home=tmp_path / home),
                capacity=capacity,
                queues=list(queues),
            )
            await service.start()
            stack.push_async_callback(service.stop)
            return service

        yield start


@pytest.fixture
async def triggerer(start_triggerer: StartTriggerer) -> TriggererService:
    return await start_triggerer()
