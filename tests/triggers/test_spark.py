"""Waiting for Spark applications: what a master and a driver's UI say, and a real standalone cluster that says it (R-SP2)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyspark
import pytest

from evenflow.errors import BadArgument
from evenflow.sdk.triggers import BaseTrigger
from evenflow.spark.java import find_java
from evenflow.triggers.spark import SparkApplicationTrigger, SparkDriverTrigger
from tests.spark.servers import Cluster, cluster_with_rest
from tests.triggers.conftest import Server
from tests.triggers.firing import event_of


def status(state: str | None, success: bool = True) -> tuple[int, dict[str, Any]]:
    told = {"action": "SubmissionStatusResponse", "success": success, "submissionId": "driver-1", "workerHostPort": "w:1"}
    return 200, {**told, **({"driverState": state} if state else {})}


async def driver(server: Server, *replies: tuple[int, Any]) -> dict[str, Any]:
    server.replies = list(replies)
    return await event_of(SparkDriverTrigger(rest_url=server.url, submission_id="driver-1", poll_interval=0.1))


async def test_a_driver(server: Server) -> None:
    event = await driver(server, status("SUBMITTED"), status("RUNNING"), (503, {}), status("FINISHED"))
    assert event == {"status": "success", "state": "FINISHED", "worker": "w:1"}
    assert server.asked[0].path == "/v1/submissions/status/driver-1"
    event = await driver(server, status("RUNNING"), status("FAILED"))
    assert event["status"] == "failed"
    assert event["message"] == "The Spark driver driver-1 ended as FAILED."
    event = await driver(server, status(None, success=False))
    assert (event["status"], event["state"]) == ("failed", "NOT_FOUND")


async def test_not_a_master(server: Server) -> None:
    event = await driver(server, (200, {"hello": 1}))
    assert "must be that of a standalone master with spark.master.rest.enabled=true." in event["message"]
    assert "no JSON" in (await driver(server, (200, b"<html>")))["message"]


def apps(active: str | None = None, completed: str | None = None) -> tuple[int, dict[str, Any]]:
    def told(state: str | None) -> list[dict[str, str]]:
        return [{"id": "app-1", "state": state}] if state else []

    return 200, {"activeapps": told(active), "completedapps": told(completed)}


async def test_an_application_by_its_master(server: Server) -> None:
    trigger = SparkApplicationTrigger(application_id="app-1", master_url=server.url, poll_interval=0.1)
    server.replies = [apps("WAITING"), apps("RUNNING"), apps(None, "FINISHED")]
    event = await event_of(trigger)
    assert event.pop("message").endswith("use SparkSubmit, or say accept_unknown=True.")
    assert event == {"status": "ended", "state": "FINISHED", "exit_code": None}, "a driver that failed is FINISHED, too"
    server.replies = [apps(None, "KILLED")]
    assert (await event_of(trigger))["message"] == "The Spark application app-1 ended as KILLED."
    server.replies = [apps()]
    assert "is not known to the master any more" in (await event_of(trigger))["message"]


@pytest.mark.parametrize(("written", "status"), [("0", "success"), ("1", "failed"), ("137", "failed"), (None, "failed")])
async def test_the_exit_code_of_its_driver_decides(server: Server, tmp_path: Path, written: str | None, status: str) -> None:
    """R-SP6: not what the master calls it. A driver that has written none was killed."""
    file = tmp_path / "exit"
    server.replies = [apps("RUNNING"), apps(None, "FINISHED")]
    trigger = SparkApplicationTrigger(application_id="app-1", master_url=server.url, exit_file=file, poll_interval=0.1)
    assert await trigger.look() is None
    if written is not None:
        file.write_text(written)
    event = await event_of(trigger)
    assert (event["status"], event["exit_code"]) == (status, None if written is None else int(written))


async def test_no_evidence_is_a_success_where_the_author_says_so(server: Server) -> None:
    server.replies = [apps(None, "FINISHED")]
    trigger = SparkApplicationTrigger(application_id="app-1", master_url=server.url, accept_unknown=True, poll_interval=0.1)
    assert (await event_of(trigger))["status"] == "success"
    server.replies = [apps(None, "FAILED")]
    assert (await event_of(trigger))["status"] == "failed"


async def test_an_application_by_its_ui(server: Server) -> None:
    """It is gone with the application, which is then over; nobody says how."""
    trigger = SparkApplicationTrigger(application_id="local-1", ui_url=server.url, poll_interval=0.1)
    lives = (200, {"id": "local-1", "attempts": [{"completed": False}]})
    server.replies = [lives, (404, b""), lives, (200, {"attempts": [{"completed": True}]})]
    event = await event_of(trigger)
    assert (event["status"], event["state"]) == ("ended", None)
    assert len(server.asked) >= 6, "once not seen is not gone"
    assert server.asked[0].path == "/api/v1/applications/local-1"


def test_arguments_are_checked() -> None:
    with pytest.raises(BadArgument, match="master_url= or ui_url="):
        SparkApplicationTrigger(application_id="a")
    with pytest.raises(BadArgument, match=r"7077 of spark://HOST:7077 is another one"):
        SparkDriverTrigger(rest_url="spark://h:7077", submission_id="d")


# -- a real cluster ----------------------------------------------------------------------------------------------------


APPLICATION = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master(sys.argv[1]).appName("counting").config("spark.ui.port", "0").getOrCreate()
print(spark.sparkContext.applicationId, spark.sparkContext.uiWebUrl, flush=True)
sys.stdin.readline()
print(spark.range(10).count(), flush=True)
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.spark
async def test_a_real_cluster(tmp_path: Path) -> None:
    """R-SP2: what a standalone master says of a driver that ends well, of one that fails, and of an application; and its own UI."""
    with cluster_with_rest(tmp_path) as cluster:
        good = submit(cluster, "org.apache.spark.deploy.SparkSubmit", ["--version"], tmp_path)
        event = await ended(SparkDriverTrigger(rest_url=cluster.rest, submission_id=good, poll_interval=0.5))
        assert (event["status"], event["state"]) == ("success", "FINISHED"), event
        bad = submit(cluster, "no.such.Main", [], tmp_path)
        event = await ended(SparkDriverTrigger(rest_url=cluster.rest, submission_id=bad, poll_interval=0.5))
        assert event["status"] == "failed", event
        unknown = SparkDriverTrigger(rest_url=cluster.rest, submission_id="driver-20260301000000-0000")
        assert (await ended(unknown))["state"] == "NOT_FOUND"

        with application(cluster) as app:
            assert app.stdout is not None
            assert app.stdin is not None
            app_id, ui_url = app.stdout.readline().split()
            by_master = SparkApplicationTrigger(application_id=app_id, master_url=cluster.web, poll_interval=0.5)
            by_ui = SparkApplicationTrigger(application_id=app_id, ui_url=ui_url, poll_interval=0.5)
            assert await by_master.look() is None
            assert await by_ui.look() is None
            waiting = asyncio.gather(ended(by_master), ended(by_ui))
            print("go on", file=app.stdin, flush=True)
            assert [(event["status"], event["state"]) for event in await waiting] == [("ended", "FINISHED"), ("ended", None)]
            assert app.stdout.readline() == "10\n"


def submit(cluster: Cluster, main: str, arguments: list[str], directory: Path) -> str:
    """A driver in the cluster, by the master's REST server; its id."""
    resource = directory / "nothing.jar"
    zipfile.ZipFile(resource, "w").close()
    message = {
        "action": "CreateSubmissionRequest",
        "clientSparkVersion": pyspark.__version__,
        "mainClass": main,
        "appResource": resource.as_uri(),
        "appArgs": arguments,
        "environmentVariables": {},
        "sparkProperties": {"spark.master": cluster.uri, "spark.app.name": main, "spark.driver.memory": "512m", "spark.jars": ""},
    }
    request = urllib.request.Request(
        f"{cluster.rest}/v1/submissions/create", json.dumps(message).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        told = json.load(answer)
    assert told["success"], told
    return str(told["submissionId"])


@contextmanager
def application(cluster: Cluster) -> Iterator[subprocess.Popen[str]]:
    environ = {**os.environ, "JAVA_HOME": str(find_java().home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-c", APPLICATION, cluster.uri]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environ, start_new_session=True, **pipes) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


async def ended(trigger: BaseTrigger) -> dict[str, Any]:
    return await event_of(trigger, within_s=120.0)
