"""A pool outlives its server."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

import pytest
from psycopg_pool import PoolTimeout

from evenflow.runtime.embedded import EmbeddedPostgres
from evenflow.store.db.connect import connect, open_pool


@pytest.fixture
def own_server() -> Iterator[EmbeddedPostgres]:
    home = Path(tempfile.mkdtemp(prefix="evenflow-pool-"))
    home.chmod(0o755)
    server = EmbeddedPostgres(home)
    yield server
    server.stop()
    rmtree(home)


@pytest.mark.slow
async def test_a_pool_works_as_soon_as_its_server_is_back(own_server: EmbeddedPostgres) -> None:
    """After an outage that is long to the library, which would try again half a minute later."""
    pool = await open_pool(own_server.start(keep=True), name="api", min_size=2, max_size=4)
    try:
        own_server.stop()
        down_at = time.monotonic()
        while time.monotonic() - down_at < 16:
            with pytest.raises(PoolTimeout):
                async with pool.connection(timeout=1.0):
                    pass
        own_server.start(keep=True)
        back_at = time.monotonic()
        async with pool.connection() as conn:
            assert await (await conn.execute("select 1")).fetchone() == (1,)
        assert time.monotonic() - back_at < 2.0
    finally:
        await pool.close()


async def test_all_connections_that_died_are_replaced_at_once(database_url: str) -> None:
    """Each that is found dead costs who wants one a pause, and the pauses grow."""
    pool = await open_pool(database_url, name="api", min_size=6, max_size=6)
    try:
        with connect(database_url, name="test") as other:
            other.execute(
                "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database()"
                " and application_name = 'evenflow api'"
            )
        for _ in range(3):
            began = time.monotonic()
            async with pool.connection() as conn:
                await conn.execute("select 1")
            assert time.monotonic() - began < 0.9
    finally:
        await pool.close()
