"""Applications on a real standalone master: what is no success though the master says so, drivers in the cluster (R-SP2, R-SP6)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenflow import DAG, SparkSubmit
from evenflow.sdk.local.outcome import RunOutcome
from evenflow.sdk.operators import spark_submit
from evenflow.spark.waiting import SparkRunEnds
from evenflow.triggers.spark import SparkApplicationTrigger
from tests.spark.servers import SPARK_HOME, Cluster, cluster_with_rest
from tests.triggers.firing import event_of

pytestmark = pytest.mark.spark

SMALL = {"spark.executor.memory": "512m", "spark.driver.memory": "512m", "spark.cores.max": "1", "spark.task.maxFailures": "1"}
SECRET = "hunter2-hunter2"
APPLICATION = """
import contextlib, glob, json, os, signal, sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
how, ledger = sys.argv[1:]
app = spark.sparkContext.applicationId
arguments = b""
for path in glob.glob("/proc/[0-9]*/cmdline"):
    with contextlib.suppress(OSError):  # a process that has ended since it was listed
        arguments += open(path, "rb").read()
with open(ledger, "a") as file:
    known = spark.conf.get("spark.my.password") == "hunter2-hunter2"
    seen = {"app": app, "in_arguments": b"hunter2" in arguments, "known": known, "ui": spark.sparkContext.uiWebUrl}
    print(json.dumps(seen), file=file)
assert spark.range(10).count() == 10
if how == "exit":
    sys.exit(1)
if how == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if how == "jvm":
    spark._jvm.java.lang.System.exit(0)
    signal.pause()
if how == "taken":
    spark.sparkContext._jsc.sc().stop()  # as when the master ends the application
    with contextlib.suppress(Exception):
        spark.range(10).count()
    sys.exit(0)
if how == "memory":
    spark.range(1).selectExpr("length(repeat(cast(id as string), 2000000000))").collect()
spark.stop()
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster_with_rest(tmp_path_factory.mktemp("cluster"), cores=3) as cluster:
        yield cluster


class Submitted:
    def __init__(self, folder: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ledger, self._app, self._folder = folder / "ledger", folder / "app.py", folder
        self._app.write_text(APPLICATION)
        self._cluster, self._monkeypatch = cluster, monkeypatch
        self.asked: list[tuple[str, dict[str, Any]]] = []  # by what waits for the driver

    def run(self, how: str, mode: str) -> RunOutcome:
        extra = f"ui=true&deploy_mode={mode}&rest={self._cluster.rest}&evidence={self._folder}/evidence&python={sys.executable}"
        self._monkeypatch.setenv("EVENFLOW_CONN_SPARK_DEFAULT", f"{self._cluster.uri}?{extra}&spark.my.password={SECRET}")
        self.listen()
        with DAG("d") as dag:
            SparkSubmit(task_id="app", application=str(self._app), args=[how, self.ledger], conf=SMALL)
        return dag.test()

    def listen(self) -> None:
        asked = self.asked

        async def ask(trigger: SparkRunEnds, question: str, arguments: dict[str, Any]) -> dict[str, Any]:
            asked.append((question, arguments))
            return {}

        self._monkeypatch.setattr(SparkRunEnds, "ask", ask)

    @property
    def drivers(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.ledger.read_text().splitlines()]


@pytest.fixture
def submitted(tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Submitted:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")  # as a session of Connect in this process leaves it
    return Submitted(tmp_path, cluster, monkeypatch)


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_a_python_application_runs_once_and_its_secrets_are_no_arguments(
    submitted: Submitted, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """R-SP2, R-SE4: also in cluster mode, which spark-submit refuses for Python."""
    run = submitted.run("well", mode)
    printed = capsys.readouterr()
    assert run.state == "success", printed.out + printed.err
    (seen,) = submitted.drivers
    assert seen == {"app": seen["app"], "in_arguments": False, "known": True, "ui": seen["ui"]}
    (told, *more) = (told for question, told in submitted.asked if question == "record")
    assert told["kind"] == "spark_ui"
    assert {each["kind"] for each in more} <= {"spark_stages"}
    assert told["value"] == {"application_id": seen["app"], "url": seen["ui"], "proxy_base": "", "is_shared": False}
    result = run.result("app")
    assert (result["application_id"], result["exit_code"]) == (seen["app"], 0)
    assert result["peak_memory_bytes"] > 50_000_000


@pytest.mark.parametrize(
    ("how", "mode", "reason"),
    [
        ("exit", "client", "SparkFailed: The Spark application ended with exit code 1; its output is in the log."),
        ("kill", "cluster", "SparkFailed: The Spark application was killed by signal 9; its output is in the log."),
        ("memory", "client", "OutOfMemoryError: "),
        ("jvm", "client", "SparkEndUnknown: The Spark application is over, and nothing proves that it succeeded: its Python ended"),
        ("taken", "client", "SparkContextStopped: the SparkContext was stopped before the application ended, and not by it"),
    ],
)
async def test_what_failed_is_no_success_though_the_master_says_finished(
    submitted: Submitted, cluster: Cluster, how: str, mode: str, reason: str
) -> None:
    """R-SP6"""
    import asyncio

    run = await asyncio.to_thread(submitted.run, how, mode)
    assert run.state == "failed"
    said = run.tasks[0].reason or ""
    assert said.startswith(reason), said
    by_master = SparkApplicationTrigger(application_id=str(submitted.drivers[0]["app"]), master_url=cluster.web, poll_interval=0.5)
    event = await event_of(by_master, within_s=60.0)
    assert (event["status"], event["state"]) == ("ended", "FINISHED"), event


def test_stages_of_a_jar_are_told_from_its_event_log(tmp_path: Path, submitted: Submitted, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SP3: it has no Python that could be asked. The jar is one that comes with Spark, and its class runs a statement."""
    (jar,) = (SPARK_HOME / "jars").glob("spark-hive-thriftserver_*.jar")
    statement = "select id % 7 as kind, count(*) from range(0, 1000, 1, 3) group by 1"
    submitted.listen()
    kept: dict[str, Any] = {}
    monkeypatch.setattr(spark_submit, "keep_with_try", lambda _, kind, value: kept.update({kind: value}))
    monkeypatch.setenv("EVENFLOW_CONN_SPARK_DEFAULT", f"spark-local://?cores=2&evidence={tmp_path}/jars")
    with DAG("d") as dag:
        SparkSubmit(
            task_id="app",
            application=str(jar),
            main_class="org.apache.spark.sql.hive.thriftserver.SparkSQLCLIDriver",
            args=["-e", statement],
            conf={"spark.sql.catalogImplementation": "in-memory"},
        )
    run = dag.test()
    assert run.state == "success"
    told = kept["spark_stages"]
    assert told["application_id"] == run.result("app")["application_id"]
    assert (told["is_local"], told["cores"], told["memory_mib"]) == (True, 2, 1024)
    first, last = told["stages"]
    assert (first["name"], first["tasks"], first["done_tasks"]) == (statement, 3, 3)
    assert first["shuffle_write_bytes"] == last["shuffle_read_bytes"] > 0
    assert last["longest_task_s"] > 0
    assert list(tmp_path.glob("jars/*/*/events")) == []
