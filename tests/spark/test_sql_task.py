"""``SparkSQL`` in a DAG: from what an author writes to a result, and what of it is refused when the file is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evenflow import DAG, SparkSQL, task
from evenflow.errors import BadArgument


@pytest.mark.spark
def test_a_query_from_a_file_with_bound_parameters_and_one_that_spark_cannot_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-SP1: results of other tasks and templates are bound; an error of analysis is not tried again."""
    monkeypatch.setenv("EVENFLOW_CONN_SPARK_DEFAULT", "spark-local://?cores=1")
    (tmp_path / "large.sql").write_text("select id, :day as day from range(10) where id >= :least -- {{ dag.dag_id }}\n")
    with DAG("d", template_searchpath=str(tmp_path)) as dag:

        @task
        def least() -> int:
            return 8

        SparkSQL(task_id="large", sql="large.sql", parameters={"least": least(), "day": "{{ run_id }}' or 1=1"})
        SparkSQL(task_id="several", sql="select 1 as a; select 2 as b;")
        SparkSQL(task_id="unbound", sql="select :day as day, :hour as hour", parameters={"hour": 7})
        SparkSQL(task_id="wrong", sql="select * from nowhere", retries=2, retry_delay=0)

    run = dag.test(run_id="r", print_logs=False)
    assert run.result("large") == [{"id": 8, "day": "r' or 1=1"}, {"id": 9, "day": "r' or 1=1"}]
    reasons = {each.task_id: each.reason or "" for each in run.tasks}
    assert "A task has one statement" in reasons["several"]
    assert "the unbound parameter: day." in reasons["unbound"]
    assert reasons["unbound"].endswith("parameters= has: hour.")
    (wrong,) = (each for each in run.tasks if each.task_id == "wrong")
    assert (wrong.state, wrong.tries) == ("failed", 1)
    assert (wrong.reason or "").startswith("AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"sql": " "}, "sql must be a statement or the name of a .sql file"),
        ({"parameters": "day"}, "parameters must be a dict or a list, not 'day'"),
        ({"path": "/a", "table": "t"}, "the rows go to one place"),
        ({"path": "/a", "partition_by": "day"}, r"Write partition_by=\['day'\]"),
        ({"partition_by": ["day"]}, "partition_by is of what is written"),
        ({"max_rows": 1_000_000}, "max_rows must be a number from 1 to 100,000, not 1000000"),
        ({"max_rows": 0}, "max_rows"),
    ],
)
def test_what_makes_no_sense_is_refused_when_the_file_is_loaded(wrong: dict[str, Any], said: str) -> None:
    with DAG("d"), pytest.raises(BadArgument, match=said):
        SparkSQL(**{"task_id": "t", "sql": "select 1", **wrong})
