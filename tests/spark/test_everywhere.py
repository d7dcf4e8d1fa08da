"""One task function, three places to run, told apart by the connection alone (R-SP1), each telling of its stages (R-SP3)."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evenflow.errors import SparkUnavailable
from evenflow.sdk.secrets.connections import Connection
from evenflow.spark import greeting, status
from evenflow.spark.session import session_for
from tests.spark.servers import connect_server, standalone_cluster

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PACE_S = 0.4  # a partition; slow enough for the poll to see the stage at work


def slowly(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Runs in Spark's Python workers, which cannot import this module."""
    import time

    for batch in batches:
        time.sleep(PACE_S)
        yield batch.assign(kind=batch["id"] % 3)


def count_kinds(spark: SparkSession) -> dict[int, int]:
    """The task: what an author writes."""
    from pyspark.sql import functions as F

    frame = spark.range(0, 300, 1, 4).mapInPandas(slowly, "id long, kind long")
    return {row["kind"]: row["n"] for row in frame.groupBy("kind").agg(F.count("*").alias("n")).collect()}


class Told:
    def __init__(self) -> None:
        self.seen: list[tuple[str, int, int]] = []

    def __call__(self, label: str, done: int, total: int, detail: dict[str, Any]) -> None:
        self.seen.append((label, done, total))


@pytest.fixture(params=["local", "cluster", "connect"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    match request.param:
        case "local":
            yield "spark-local://?cores=2"
        case "cluster":
            with standalone_cluster(tmp_path) as master:
                yield f"{master}?python={this_python()}&spark.executor.memory=512m&spark.cores.max=1"
        case "connect":
            with connect_server(tmp_path) as server:
                yield server


def test_the_same_function_on_every_target(uri: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """R-SP1, R-SP3."""
    monkeypatch.setattr(status, "FIGURES_EVERY_S", 0.2)
    monkeypatch.setattr(status, "FIGURES_SHARE", 1.0)  # on a busy machine a look takes long
    caplog.set_level(logging.INFO)
    told = Told()
    before = dict(os.environ)
    conf = {"spark.sql.shuffle.partitions": "3"}
    kept: list[tuple[str, dict[str, Any]]] = []

    def keep(kind: str, value: dict[str, Any]) -> None:
        kept.append((kind, value))

    conn = Connection.parse("spark_default", uri)
    with session_for(
        conn, app_name="count_kinds", conf=conf, progress=told, keep=lambda kind, value: kept.append((kind, value))
    ) as spark:
        assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
        assert count_kinds(spark) == {0: 100, 1: 100, 2: 100}
    assert dict(os.environ) == before
    assert [record.message for record in caplog.records if record.name.startswith("py4j")] == []
    assert told.seen
    assert all(label.startswith("stage ") and 0 <= done <= total for label, done, total in told.seen)
    if uri.startswith("sc:"):
        assert spark.is_stopped
        assert kept == []  # the server is one application, of all who ask it
    else:
        kinds = [kind for kind, _ in kept]
        assert len(kinds) > 2, "stages are told while they run, too"
        assert set(kinds[:-1]) == {"spark_stages"}
        assert kinds[-1] == "spark_cost", "once, at the end"
        live, told_stages, cost = kept[0][1], kept[-2][1], kept[-1][1]
        assert live["application_id"] == told_stages["application_id"]
        assert min(stage.get("done_tasks", 0) - stage["tasks"] for stage in live["stages"]) < 0
        stages = told_stages["stages"]
        assert next(stage["keys"] for stage in stages if "shuffle_read_bytes" in stage) == ("kind",)
        assert max(stage["longest_task_s"] for stage in stages) >= PACE_S
        assert spark.sparkContext._jsc is None
        assert cost["application_id"] == told_stages["application_id"]
        assert cost["run_s"] >= 4 * PACE_S  # of four partitions
        assert cost["wall_s"] * cost["cores"] >= cost["run_s"] > cost["gc_s"] >= 0
        assert cost["shuffle_bytes"] > 0


@pytest.mark.parametrize(("scheme", "what"), [("spark", "Spark master"), ("sc", "Spark Connect server")])
def test_nobody_there(scheme: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(greeting, "RETURNS", 0.0)
    conn = Connection.parse("spark_default", f"{scheme}://127.0.0.1:1")
    with (
        pytest.raises(SparkUnavailable) as caught,
        session_for(conn, app_name="x", conf={}, progress=lambda *_: None),
    ):
        raise AssertionError("a session without a server")
    assert str(caught.value) == (
        f"No {what} answers at 127.0.0.1:1, where connection 'spark_default' points (Connection refused). "
        "Start one there, or set EVENFLOW_CONN_SPARK_DEFAULT to where it is."
    )


def this_python() -> str:
    import sys

    return sys.executable
