"""A Spark Connect server that Evenflow owns: it is there for sessions with its token alone (R-SP1, R-SP6)."""

from __future__ import annotations

import asyncio
import http.client
import importlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from evenflow.api.rest import spark_ui_pages
from evenflow.connect_server.keeper import ServerLimits
from evenflow.connect_server.service import ConnectServerService
from evenflow.errors import SparkServerLost
from evenflow.sdk.secrets.connections import Connection
from evenflow.spark.local_server import END, uri_of
from evenflow.spark.served import telling
from evenflow.spark.session import session_for
from tests.ports import lasting_port
from tests.waiting import SYSTEM_DEADLINE_S, until, wait_until

TOKEN = "a-token-of-tests"

pytestmark = [pytest.mark.spark, pytest.mark.system]


@pytest.fixture(autouse=True)
def _spark_is_loaded() -> None:
    """The owner of the server and the session load it in two threads of this process; elsewhere each has a process of its own."""
    importlib.import_module("pyspark.sql")


@asynccontextmanager
async def served(log: Path, ui_port: int) -> AsyncIterator[ConnectServerService]:
    limits = ServerLimits(memory=1536, idle=0)
    service = ConnectServerService(name="c", port=0, ui_port=ui_port, token=TOKEN, limits=limits, log=log)
    await service.start()
    try:
        yield service
    finally:
        await service.stop()


def counted(service: ConnectServerService, token: str = TOKEN) -> int:
    conn = Connection.parse("spark_default", uri_of(service.port, token, log=service._log))
    with session_for(conn, app_name="x", conf={}, progress=lambda *_: None) as spark:
        return spark.range(7).count()


def pages(service: ConnectServerService, ui_port: int) -> dict[str, tuple[int, str]]:
    """What people are shown of a session's Spark UI."""
    told: dict[str, dict[str, Any]] = {}
    conn = Connection.parse("spark_connect", uri_of(service.port, TOKEN, ui_port, log=service._log))
    with session_for(conn, app_name="x", conf={}, progress=lambda *_: None, keep=told.__setitem__) as spark:
        assert spark.range(7).count() == 7
        page = spark_ui_pages.ui_kept(told["spark_ui"])
        shown = {}
        for path in ("jobs/", "stages/", "SQL/", "connect/", f"api/v1/applications/{page.application_id}/executors"):
            answer = asyncio.run(spark_ui_pages.show(page, path, "", "/below"))
            shown[path.rpartition("/")[2] or path] = (answer.status_code, bytes(answer.body).decode())
    return shown


def jvms() -> list[psutil.Process]:
    children = psutil.Process().children(recursive=True)
    return [each for each in children if each.name() == "java" and each.status() != psutil.STATUS_ZOMBIE]


async def test_it_is_known_by_its_token_and_there_again_after_it_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is left when its owner has ended."""
    monkeypatch.setattr("evenflow.api.limits.SPARK_UI_ANSWERS", SYSTEM_DEADLINE_S)
    ui_port = lasting_port()
    async with served(tmp_path / "spark.log", ui_port) as service:
        assert await asyncio.to_thread(counted, service) == 7
        (first,) = jvms()
        arguments = " ".join(first.cmdline())
        assert TOKEN not in arguments
        assert "-Xmx960m" in first.cmdline()
        listening = {each.laddr.ip for each in first.net_connections("tcp") if each.status == "LISTEN"}
        assert all(ip.removeprefix("::ffff:") == "127.0.0.1" for ip in listening)
        with pytest.raises(Exception, match=r"(?i)unauthenticated|token"):
            await asyncio.to_thread(counted, service, "another")
        for path, (status, text) in (await asyncio.to_thread(pages, service, ui_port)).items():
            assert (status, path, TOKEN in text) == (200, path, False)
            assert "kill/?id" not in text
        first.kill()
        await until(lambda: first not in jvms(), within_s=SYSTEM_DEADLINE_S)
        assert await asyncio.to_thread(counted, service) == 7
        (second,) = jvms()
    assert not second.is_running()
    assert (tmp_path / "spark.log").exists()


def kept_of_a_session(uri: str, folder: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The stages that a try keeps while it runs, and all that it has kept at its end. Another session has work of its own."""
    told: dict[str, dict[str, Any]] = {}
    conn = Connection.parse("spark_default", uri)
    nobodys = session_for(conn, app_name="y", conf={}, progress=lambda *_: None)
    with nobodys as other, session_for(conn, app_name="x", conf={}, progress=lambda *_: None, keep=told.__setitem__) as spark:
        other.range(0, 1000, 1, 7).selectExpr("id % 3 as not_ours").groupBy("not_ours").count().collect()
        spark.range(0, 1000, 1, 3).selectExpr("id", "id % 7 as shop", "id * 2 as price").write.parquet(str(folder / "sales"))
        wait_until(lambda: "spark_stages" in told, lambda: f"stages among {list(told)}", within_s=SYSTEM_DEADLINE_S)
        early = told["spark_stages"]
        totals = spark.read.parquet(str(folder / "sales")).groupBy("shop").sum("price").withColumnRenamed("sum(price)", "total")
        totals.write.parquet(str(folder / "totals"))
        other.range(0, 1000, 1, 7).count()
    return early, told


def refusal(port: int) -> int:
    conn = http.client.HTTPConnection("localhost", port)
    conn.request("POST", END, '{"session_id": "x"}', {"Authorization": "Bearer another"})
    return conn.getresponse().status


async def test_what_a_session_took_and_read_and_wrote_is_kept_with_its_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SP3: figures of its own stages by name, live and at the end, and the lineage of its columns, as of a classic session. Of
    a server that is not Evenflow's own the figures come from its Spark UI.
    """
    monkeypatch.setattr(telling, "FIGURES_EVERY_S", 0.2)
    monkeypatch.setattr(telling, "FIGURES_SHARE", 1.0)
    ui_port = lasting_port()
    async with served(tmp_path / "spark.log", ui_port) as service:
        own = uri_of(service.port, TOKEN, log=service._log)
        foreign = f"sc://localhost:{service.port}/?token={TOKEN}&ui=http://127.0.0.1:{ui_port}"
        kept = {}
        for uri, folder in ((own, tmp_path / "own"), (foreign, tmp_path / "foreign")):
            early, kept[uri] = await asyncio.to_thread(kept_of_a_session, uri, folder)
            assert early["stages"]
        assert await asyncio.to_thread(refusal, service.port) == 401
    for told in kept.values():
        stages = told["spark_stages"]["stages"]
        assert told["spark_stages"]["is_shared"]
        assert {3} <= {stage["tasks"] for stage in stages}
        assert 7 not in {stage["tasks"] for stage in stages}
        assert all(stage["done_tasks"] == stage["tasks"] and stage["wall_s"] > 0 for stage in stages)
        assert "write" in {stage["name"] for stage in stages}
        assert any("shop" in stage.get("keys", ()) and stage.get("shuffle_write_bytes") for stage in stages)
        assert (told["spark_cost"]["output_bytes"] > 0, told["spark_cost"]["cores"]) == (True, 0)
    assert "lineage" not in kept[foreign]
    (totals,) = [each for each in kept[own]["lineage"]["outputs"] if each["name"].endswith("/totals")]
    (origin,) = totals["facets"]["columnLineage"]["fields"]["total"]["inputFields"]
    assert (origin["name"].endswith("/sales"), origin["field"]) == (True, "price")


MEMORY_RUNS_OUT = "select length(concat_ws('', collect_list(repeat(cast(id as string), 100000)))) from range(20000)"


def asked(service: ConnectServerService, marker: Path, statement: str | None) -> None:
    """A query that waits for ever, or this statement."""

    def rows(batches: Any) -> Any:
        marker.touch()
        until = time.monotonic() + SYSTEM_DEADLINE_S
        while time.monotonic() < until:
            time.sleep(0.05)
        yield from batches

    conn = Connection.parse("spark_default", uri_of(service.port, TOKEN, log=service._log))
    with session_for(conn, app_name="x", conf={}, progress=lambda *_: None) as spark:
        if statement is None:
            spark.range(0, 1, 1, 1).mapInArrow(rows, "id long").count()
        else:
            spark.sql(statement).collect()


async def test_who_has_a_session_when_the_server_ends_loses_its_try_and_memory_is_the_reason(tmp_path: Path) -> None:
    """R-SP6: the owner has another server running soon, which knows nothing of the session. A query that takes all memory costs
    the others theirs: they are told why, and have not failed.
    """
    async with served(tmp_path / "spark.log", 0) as service:
        assert await asyncio.to_thread(counted, service) == 7
        (jvm,) = jvms()
        waiting = asyncio.create_task(asyncio.to_thread(asked, service, tmp_path / "first", None))
        await until((tmp_path / "first").exists, within_s=SYSTEM_DEADLINE_S)
        jvm.kill()
        with pytest.raises(SparkServerLost, match=r"has ended meanwhile|does not answer any more") as lost:
            await waiting
        assert "OutOfMemoryError" not in str(lost.value)
        waiting = asyncio.create_task(asyncio.to_thread(asked, service, tmp_path / "second", None))
        await until((tmp_path / "second").exists, within_s=SYSTEM_DEADLINE_S)
        for query in (asyncio.create_task(asyncio.to_thread(asked, service, tmp_path, MEMORY_RUNS_OUT)), waiting):
            with pytest.raises(SparkServerLost, match=r"^OutOfMemoryError: .*EVENFLOW_SPARK_CONNECT_MEMORY"):
                await query
