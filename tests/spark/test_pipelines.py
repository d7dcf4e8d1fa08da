"""``SparkPipeline``: a declarative pipeline, flow by flow (R-SP1, R-SP3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evenflow import DAG, SparkPipeline
from evenflow.errors import BadArgument
from evenflow.sdk.loading.data_files import files_of, watched_paths
from evenflow.sdk.loading.loader import load_file
from evenflow.sdk.local.outcome import RunOutcome
from evenflow.spark.pipelines import Flows
from tests.spark.servers import connect_server

Told = list[tuple[str, int, int, dict[str, Any]]]

ORDERS = """
from pyspark import pipelines as dp

@dp.materialized_view
def orders():
    return spark.range(10).selectExpr("id", "id % 3 as kind")
"""
BY_KIND = "create materialized view by_kind as select kind, count(*) as n from orders group by kind"


def heard(*messages: str) -> tuple[Flows, Told]:
    told: Told = []
    flows = Flows(lambda *each: told.append(each))
    for message in messages:
        flows.hear(message)
    return flows, told


def test_flows_are_told_as_they_move() -> None:
    flows, told = heard("Flow c.d.a is QUEUED.", "Flow c.d.b is QUEUED.", "Flow c.d.a has COMPLETED.", "Run is RUNNING.")
    assert told[-1] == ("flow c.d.a: completed", 1, 2, {"flows": [{"name": "c.d.b", "state": "QUEUED"}]})
    assert len(told) == 3
    assert flows.reason() is None


def test_a_flow_that_spark_has_tried_again_is_what_it_is_at_the_end() -> None:
    failed = "Flow 'c.d.a' has FAILED.\nError: [BOOM] boo. SQLSTATE: P0001\nmore"
    assert heard(failed, "Flow c.d.a is RUNNING.", "Flow c.d.a has COMPLETED.")[0].reason() is None
    flows, _ = heard(failed, "Flow 'c.d.b' has FAILED.", failed)
    assert flows.reason() == "Flow c.d.a: [BOOM] boo. SQLSTATE: P0001. Also failed: c.d.b."


def test_of_flows_that_cannot_be_resolved_the_first_is_the_reason() -> None:
    flows, _ = heard(
        "Failed to resolve flow due to upstream failure: 'c.d.b'.\nError: x",
        "Failed to resolve flow: 'c.d.a'.\nError: [COLUMN] no `x`.",
    )
    assert flows.states == {"c.d.b": "SKIPPED", "c.d.a": "FAILED"}
    assert flows.reason() == "Flow c.d.a: [COLUMN] no `x`."


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    storage = (tmp_path / "storage").as_uri()
    spec = f"name: shop\nstorage: {storage}\nlibraries:\n  - glob:\n      include: flows/**\n"
    (tmp_path / "shop" / "spark-pipeline.yml").write_text(spec)
    flows = tmp_path / "shop" / "flows"
    flows.mkdir()
    (flows / "orders.py").write_text(ORDERS)
    (flows / "by_kind.sql").write_text(BY_KIND)
    return tmp_path / "shop"


def run(pipeline: Path, **options: Any) -> RunOutcome:
    with DAG("d") as dag:
        SparkPipeline(task_id="p", spec=str(pipeline / "spark-pipeline.yml"), retries=1, retry_delay=0, **options)
    return dag.test(run_id="r", print_logs=False)


@pytest.mark.spark
def test_a_pipeline_on_a_real_server_and_the_flow_that_failed(
    pipeline: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flow that cannot be planned is not tried again; one that fails while it runs is."""
    more = pipeline / "flows" / "more.sql"
    with connect_server(tmp_path) as uri:
        monkeypatch.setenv("EVENFLOW_CONN_SPARK_DEFAULT", uri)
        done = run(pipeline)
        assert done.result("p") == {"spark_catalog.default.orders": "COMPLETED", "spark_catalog.default.by_kind": "COMPLETED"}
        more.write_text("create materialized view bad as select nope from orders")
        (planned,) = run(pipeline).tasks
        more.write_text("create materialized view bad as select raise_error('no such shop') as x, kind from orders")
        (ran,) = run(pipeline, conf={"spark.sql.pipelines.execution.maxFlowRetryAttempts": "0"}).tasks
    assert (planned.state, planned.tries) == ("failed", 1)
    assert (planned.reason or "").startswith("SparkFailedForGood: Flow spark_catalog.default.bad: [UNRESOLVED_COLUMN")
    assert (ran.state, ran.tries) == ("failed", 2)
    assert (ran.reason or "").startswith("SparkFailed: Flow spark_catalog.default.bad: [USER_RAISED_EXCEPTION] no such shop")


def test_without_a_server_there_is_what_to_type(pipeline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENFLOW_CONN_SPARK_DEFAULT", "spark-local://?cores=1")
    (failed,) = run(pipeline).tasks
    assert "Start one with evenflow up --spark-connect" in (failed.reason or "")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"spec": "pipeline.py"}, "must be the name of a YAML file"),
        ({"spec": "spark-pipeline.yml"}, "Write spec='FOLDER/spark-pipeline.yml'"),
        ({"refresh": "orders"}, r"Write refresh=\['orders'\]"),
        ({"refresh": ["orders"], "full_refresh_all": True}, "Leave refresh and full_refresh out"),
    ],
)
def test_what_makes_no_sense_is_refused_when_the_file_is_loaded(wrong: dict[str, Any], said: str) -> None:
    with DAG("d"), pytest.raises(BadArgument, match=said):
        SparkPipeline(**{"task_id": "p", "spec": "shop/spark-pipeline.yml", **wrong})


def test_its_folder_travels_with_the_code_python_files_too(tmp_path: Path) -> None:
    for name in ("shop/spark-pipeline.yml", "shop/flows/a.py", "shop/flows/b.sql"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    file = tmp_path / "dag.py"
    file.write_text(
        "from evenflow import DAG, SparkPipeline\nwith DAG('d'):\n    SparkPipeline(task_id='p', spec='shop/spark-pipeline.yml')\n"
    )
    dags = list(load_file(file, tmp_path).dags.values())
    assert files_of(watched_paths(dags, tmp_path), tmp_path) == ["shop/flows/a.py", "shop/flows/b.sql", "shop/spark-pipeline.yml"]
