"""What `api_lists` and `ui_pages` ask for is what there is, and a history made in bulk is one that the product could have."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import psycopg

from evenflow.api.rest.app import described_rest
from evenflow.contracts.rest import PREFIX
from evenflow.explaining.audit import audit

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import page_readers
from api_lists import BY_NAME, LISTS
from finished_runs import FAILED, add_finished_runs, add_partitions
from server import open_connection
from stored_shape import store_shape

DAGS, TASKS, RUNS = 2, 3, 60
SHAPE: dict[str, Any] = {"groups": [{"name": "past", "dags": DAGS, "graph": "chain", "n": TASKS, "body": "noop"}]}


def test_each_list_of_rest_is_measured() -> None:
    """Whoever adds a route that answers pages adds it here, or says that it is about one thing by its name."""
    paged = {
        path.removeprefix(f"{PREFIX}/")
        for path, operations in described_rest().openapi()["paths"].items()
        if any(parameter["name"] == "limit" for parameter in operations.get("get", {}).get("parameters", ()))
    }
    asked = {name.split(", ")[0] for name in LISTS}
    assert paged - BY_NAME <= asked
    assert paged >= BY_NAME


def test_pages_ask_what_rest_answers() -> None:
    paths = {path.removeprefix(f"{PREFIX}/") for path in described_rest().openapi()["paths"]}
    asked = {question.split("?")[0] for question in (*page_readers.HOME, *page_readers.RUNS, *page_readers.of_dag("{dag_id}"))}
    assert asked <= paths


def test_a_history_in_bulk_is_one_that_the_product_could_have(database_url: str) -> None:
    dag_ids = list(asyncio.run(store_shape(database_url, SHAPE)))
    with open_connection(database_url, "bench") as conn:
        add_partitions(conn)
        assert add_finished_runs(conn, dag_ids, RUNS) == DAGS * RUNS * TASKS
        assert audit(conn) == []
        assert _number(conn, "select count(*) from task_event_default") == 0
        assert _number(conn, "select count(*) from task_event") == 2 * DAGS * RUNS * TASKS
        failed = -(-(RUNS - 1) // FAILED)
        assert _number(conn, "select count(*) from dag_run where state = 'failed'") == DAGS * failed
        assert _number(conn, "select count(*) from task_instance where state = 'failed'") == DAGS * failed
        newest = "select run_id from dag_run where dag_id = %s order by run_key desc limit 1"
        assert _number(conn, newest, dag_ids[0]) == "scheduled__0"


def _number(conn: psycopg.Connection[Any], query: str, *args: str) -> Any:
    (found,) = conn.execute(query.encode(), args).fetchone() or (None,)
    return found
