"""The history pipeline in all of ``evenflow up``: it learns from what the same system did."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest
from psycopg.rows import dict_row

from evenflow.runtime.embedded import EmbeddedPostgres
from tests.insights.conftest import FEW_ROWS
from tests.running import RunningEvenflow, evenflow_json, running_evenflow
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(1_500)]  # three sessions of Spark, 23 statements

RUNS = 2
DAG_FILE = """
from evenflow import dag, task

@dag(schedule=None, default_args={"owner": "shop"})
def sales():
    @task
    def load():
        return 1

    @task
    def count(rows):
        return rows

    count(load())

sales()
"""


@pytest.fixture
def system(tmp_path: Path) -> Iterator[RunningEvenflow]:
    small = f"spark-local://?cores=1&{urlencode(FEW_ROWS)}"
    with running_evenflow(EVENFLOW_HISTORY=str(tmp_path / "history"), EVENFLOW_CONN_SPARK_DEFAULT=small) as running:
        (running.dags / "sales.py").write_text(DAG_FILE)
        wait_until(lambda: len(evenflow_json(running.home, "dags", "list")["dags"]) == 2, lambda: running.log, within_s=120)
        yield running


def runs_of(system: RunningEvenflow, dag_id: str) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = evenflow_json(system.home, "runs", "list", dag_id)["runs"]
    return runs


def ended(system: RunningEvenflow, dag_id: str, within_s: float) -> str:
    """The state of a new run of it, once that is over."""
    run_id = evenflow_json(system.home, "runs", "trigger", dag_id)["run_id"]

    def found() -> str | None:
        (run,) = (run for run in runs_of(system, dag_id) if run["run_id"] == run_id)
        return run["state"] if run["state"] in ("success", "failed") else None

    state: str = wait_until(found, lambda: system.log, within_s=within_s)
    return state


def read(conn: psycopg.Connection[dict[str, Any]], query: str) -> list[dict[str, Any]]:
    return conn.execute(query).fetchall()


def test_the_marts_of_what_ran_come_back_and_retention_waits_for_them(system: RunningEvenflow, tmp_path: Path) -> None:
    """R-SP4: the DAG that comes with EVENFLOW_HISTORY exports, refines on Spark and returns; what is not exported may not go."""
    own = wait_until(lambda: runs_of(system, "history_pipeline"), lambda: system.log, within_s=120)  # of yesterday, by its schedule
    system.evenflow("runs", "cancel", f"history_pipeline/{own[0]['run_id']}", "--yes")
    assert [ended(system, "sales", within_s=120) for _ in range(RUNS)] == ["success"] * RUNS
    with psycopg.connect(EmbeddedPostgres(system.home).url(), autocommit=True, row_factory=dict_row) as conn:
        assert read(conn, "select value from setting where name = 'retention_awaits_export'") == [{"value": True}]
        last = read(conn, "select max(xact) as xact from task_event")[0]["xact"]
        assert all(row["past"] <= last for row in read(conn, "select past from exported")), "the runs may not go yet"
        assert ended(system, "history_pipeline", within_s=900) == "success", system.log
        assert read(conn, "select past from exported")[0]["past"] > last, "now they may"
        costs = read(conn, "select dag_id, owner, sum(tries) as tries from evenflow_reporting_v1.mart_costs group by 1, 2")
        assert {"dag_id": "sales", "owner": "shop", "tries": 2 * RUNS} in costs
        members = "select task_id, on_path from evenflow_reporting_v1.mart_critical_members where dag_id = 'sales' order by task_id"
        assert read(conn, members) == [{"task_id": task_id, "on_path": RUNS} for task_id in ("count", "load")]
        assert read(conn, "select * from evenflow_reporting_v1.mart_violations") == []
    assert list((tmp_path / "history" / "spark" / "segments.parquet").glob("*.parquet"))
