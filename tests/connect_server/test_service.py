"""A Spark Connect server that Evenflow owns: it is there for who wants a session, and for nobody else (R-SP1, R-SP6)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from evenflow.connect_server.keeper import ServerLimits
from evenflow.connect_server.service import ConnectServerService
from evenflow.sdk.secrets.connections import Connection
from evenflow.spark.local_server import uri_of
from evenflow.spark.session import session_for
from tests.waiting import SYSTEM_DEADLINE_S, until

TOKEN = "a-token-of-tests"

pytestmark = [pytest.mark.spark, pytest.mark.system]


@asynccontextmanager
async def served(log: Path) -> AsyncIterator[ConnectServerService]:
    service = ConnectServerService(name="c", port=0, token=TOKEN, limits=ServerLimits(memory=1536, idle=0), log=log)
    await service.start()
    try:
        yield service
    finally:
        await service.stop()


def counted(service: ConnectServerService, token: str = TOKEN) -> int:
    conn = Connection.parse("spark_default", uri_of(service.port, token))
    with session_for(conn, app_name="x", conf={}, progress=lambda *_: None) as spark:
        return spark.range(7).count()


def jvms() -> list[psutil.Process]:
    children = psutil.Process().children(recursive=True)
    return [each for each in children if each.name() == "java" and each.status() != psutil.STATUS_ZOMBIE]


async def test_it_is_known_by_its_token_and_there_again_after_it_was_killed(tmp_path: Path) -> None:
    """Nothing of it is left when its owner has ended."""
    async with served(tmp_path / "spark.log") as service:
        assert await asyncio.to_thread(counted, service) == 7
        (first,) = jvms()
        arguments = " ".join(first.cmdline())
        assert TOKEN not in arguments
        assert "-Xmx960m" in first.cmdline()
        listening = {each.laddr.ip for each in first.net_connections("tcp") if each.status == "LISTEN"}
        assert all(ip.removeprefix("::ffff:") == "127.0.0.1" for ip in listening)
        with pytest.raises(Exception, match=r"(?i)unauthenticated|token"):
            await asyncio.to_thread(counted, service, "another")
        first.kill()
        await until(lambda: first not in jvms(), within_s=SYSTEM_DEADLINE_S)
        assert await asyncio.to_thread(counted, service) == 7
        (second,) = jvms()
    assert not second.is_running()
    assert (tmp_path / "spark.log").exists()
