"""DataFrames as results and SQL with bound parameters, where Spark is elsewhere: on a cluster, and on a Spark Connect server."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenflow import DAG, SparkFrame, SparkSQL, task
from tests.spark.servers import connect_server, standalone_cluster

pytestmark = pytest.mark.spark


@pytest.fixture(params=["cluster", "connect"])
def elsewhere(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Is the default connection."""
    with standalone_cluster(tmp_path) if request.param == "cluster" else connect_server(tmp_path) as uri:
        extra = f"?python={sys.executable}&spark.executor.memory=512m" if request.param == "cluster" else ""
        monkeypatch.setenv("EVENFLOW_CONN_SPARK_DEFAULT", uri + extra)
        yield


@pytest.mark.usefixtures("elsewhere")
def test_a_dataframe_and_what_sql_makes_of_it_pass_from_session_to_session(tmp_path: Path) -> None:
    """R-SP1: each task has a session of its own; texts, files, names, lists and places are bound as on one machine."""
    (tmp_path / "dear.sql").write_text("select *, :day as day from orders where price >= :least -- {{ dag.dag_id }}\n")
    with DAG("d", template_searchpath=str(tmp_path)) as dag:

        @task.spark
        def orders(*, spark: Any) -> Any:
            return spark.range(6).selectExpr("id", "cast(id * 1.5 as decimal(9, 2)) as price", "array(id % 2) as kinds")

        @task
        def told(made: SparkFrame, dear: SparkFrame) -> list[Any]:
            return [made.rows, dear.rows, dear.columns]

        made = orders()
        dear = SparkSQL(
            task_id="dear",
            sql="dear.sql",
            views={"orders": made},
            parameters={"least": 3, "day": "{{ run_id }}' or 1=1"},
            result="frame",
        )
        SparkSQL(
            task_id="some",
            sql="select id, price, day from d where id > ? and array_contains(?, id) order by id",
            views={"d": dear.output},
            parameters=[2, [1, 3, 5]],
        )
        SparkSQL(
            task_id="written",
            sql="select id, kinds[0] as kind from orders",
            views={"orders": made},
            path=str(tmp_path / "written"),
            partition_by=["kind"],
        )
        told(made, dear.output)

    run = dag.test(run_id="r", print_logs=False)
    assert {each.task_id: (each.state, each.reason) for each in run.tasks} == dict.fromkeys(
        ["orders", "dear", "some", "written", "told"], ("success", None)
    )
    assert run.result("told") == [6, 4, {"id": "long", "price": "decimal(9,2)", "kinds": "array", "day": "string"}]
    assert [(row["id"], str(row["price"]), row["day"]) for row in run.result("some")] == [
        (3, "4.50", "r' or 1=1"),
        (5, "7.50", "r' or 1=1"),
    ]
    assert run.result("written") == 6
    assert sorted(each.name for each in (tmp_path / "written").glob("kind=*")) == ["kind=0", "kind=1"]
