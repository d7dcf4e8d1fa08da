"""An API on a real database, and clients of every kind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evenflow.api.service import ApiService
from evenflow.api.tokens import mint_operator_token, mint_service_token
from evenflow.api.vault import Vault
from evenflow.client.execution import ExecutionClient
from evenflow.wire.objects import ObjectStorage
from tests.api.world import World, new_worker


@pytest.fixture
async def api(database_url: str, tmp_path: Path) -> AsyncIterator[ApiService]:
    service = ApiService(
        database_url,
        host="127.0.0.1",
        port=0,
        log_dir=tmp_path / "logs",
        name="api",
        vault=Vault(tmp_path / "secrets.key"),
        storage=ObjectStorage(str(tmp_path / "xcom")),
    )
    await service.start()
    yield service
    await service.stop()


@pytest.fixture
def api_url(api: ApiService) -> str:
    return f"http://127.0.0.1:{api.port}"


@pytest.fixture
def world(api: ApiService, db: psycopg.Connection[Any]) -> World:
    row = db.execute("select value from secret where name = 'token_key'").fetchone()
    assert row is not None
    return World(db, bytes(row[0]))


@pytest.fixture
def no_dag(db: psycopg.Connection[Any]) -> None:
    """A database without the DAG of callbacks, for tests that count what is there."""
    for table in ("dag", "task", "dag_version", "code where code_hash = ''"):
        db.execute(f"delete from {table}")


@pytest.fixture
def worker_token(world: World) -> str:
    return mint_service_token(world.key, "worker")


@pytest.fixture
def processor_token(world: World) -> str:
    return mint_service_token(world.key, "processor")


@pytest.fixture
def operator_token(world: World) -> str:
    return mint_operator_token(world.key, name="ada")


@pytest.fixture
async def client(api_url: str, worker_token: str) -> AsyncIterator[ExecutionClient]:
    client = ExecutionClient(api_url, worker_token)
    yield client
    await client.close()


@pytest.fixture
async def processor(api_url: str, processor_token: str) -> AsyncIterator[ExecutionClient]:
    client = ExecutionClient(api_url, processor_token)
    yield client
    await client.close()


@pytest.fixture
async def worker(client: ExecutionClient) -> int:
    """The service id of a registered worker."""
    return await new_worker(client)
