"""API servers that share nothing but a database and a bucket serve the same logs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evenflow.client.rest import RestClient
from evenflow.errors import ApiRefused
from evenflow.wire.messages import LogChunk, Logs
from tests import tokens
from tests.api.world import ClientOfAll, World
from tests.apis import make_api
from tests.clouds import Cloud, cloud, shared_cloud
from tests.waiting import until

__all__ = ["cloud", "shared_cloud"]  # fixtures


async def test_any_server_shows_what_another_one_was_sent(
    database_url: str, db: psycopg.Connection[Any], cloud: Cloud, tmp_path: Path
) -> None:
    """R-EX3: also to who follows it, and when the server that stored it is gone."""
    one, two = (make_api(database_url, tmp_path, name=name, logs="s3://logs/servers") for name in ("one", "two"))
    await one.start()
    await two.start()
    world = World(db)
    run = world.run(world.add_dag())
    world.dispatch(run, 1)
    world.instance(run, 0, state="running", epoch=1)
    token, operator = world.try_token(1), tokens.operator_token(db)

    async def send(port: int, offset: int, data: bytes) -> list[int]:
        client = ClientOfAll(f"http://127.0.0.1:{port}", db, "worker")
        try:
            return (await client.send_logs(Logs(chunks=[LogChunk(token=token, offset=offset, data=data)]))).offsets
        finally:
            await client.close()

    async with RestClient(f"http://127.0.0.1:{two.port}", operator) as rest:
        assert await send(one.port, 0, b"first ") == [6]
        part = await rest.read_log("sales", "r1", "extract")
        assert (part.text, part.offset, part.complete) == ("first ", 6, False)
        following = asyncio.create_task(rest.read_log("sales", "r1", "extract", offset=6, wait_s=20))
        await until(lambda: two._logs._news)
        assert await send(one.port, 6, b"second ") == [13]
        assert (await following).text == "second "
        await one.stop()
        assert await send(two.port, 6, b"second third") == [18]
        world.instance(run, 0, state="success", epoch=1)
        world.end(1)
        whole = await rest.read_log("sales", "r1", "extract")
        assert (whole.text, whole.complete) == ("first second third", True)
    await two.stop()


async def test_a_log_that_is_away_is_a_clear_answer(
    database_url: str, db: psycopg.Connection[Any], cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of the API goes on."""
    api = make_api(database_url, tmp_path, logs="s3://logs/away")
    await api.start()
    world = World(db)
    world.run(world.add_dag())
    async with RestClient(f"http://127.0.0.1:{api.port}", tokens.operator_token(db)) as rest:
        monkeypatch.setattr("evenflow.api.limits.LOG_STORAGE", 0.3)
        cloud.stand_still()
        reading = asyncio.create_task(rest.read_log("sales", "r1", "extract"))
        assert (await rest.list_dags()).items
        with pytest.raises(ApiRefused, match=r"The log cannot be read from s3://logs/away: it did not answer within 0.3 s"):
            await reading
        cloud.go_on()
    await api.stop()
