"""An API on a real database, and clients of every kind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import psycopg
import pytest

from evenflow.api.service import ApiService
from evenflow.client.execution import ExecutionClient
from evenflow.client.rest import RestClient
from tests import tokens
from tests.api.world import ClientOfAll, World, new_worker


@pytest.fixture
def api_url(api: ApiService) -> str:
    return f"http://127.0.0.1:{api.port}"


@pytest.fixture
def world(api: ApiService, db: psycopg.Connection[Any]) -> World:
    return World(db)


@pytest.fixture
def no_dag(db: psycopg.Connection[Any]) -> None:
    """A database without the DAG of callbacks, for tests that count what is there."""
    for table in ("dag", "task", "dag_version", "code where code_hash = ''"):
        db.execute(f"delete from {table}")


@pytest.fixture
def worker_token(world: World) -> str:
    """Of the fleet."""
    return tokens.fleet_token(world.conn, "worker")


@pytest.fixture
def processor_token(world: World) -> str:
    """Of the fleet."""
    return tokens.fleet_token(world.conn, "processor")


@pytest.fixture
def operator_token(world: World) -> str:
    return tokens.operator_token(world.conn)


@pytest.fixture
async def rest(api_url: str, operator_token: str) -> AsyncIterator[RestClient]:
    """For an admin."""
    async with RestClient(api_url, operator_token) as client:
        yield client


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
async def client(api_url: str, world: World) -> AsyncIterator[ExecutionClient]:
    client = ClientOfAll(api_url, world.conn, "worker")
    yield client
    await client.close()


@pytest.fixture
async def processor(api_url: str, world: World) -> AsyncIterator[ExecutionClient]:
    client = ClientOfAll(api_url, world.conn, "processor")
    yield client
    await client.close()


@pytest.fixture
async def worker(client: ExecutionClient) -> int:
    """The service id of a registered worker."""
    return await new_worker(client)
