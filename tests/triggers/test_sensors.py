"""Sensors of other systems: looking by themselves, and handing the waiting to a trigger."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evenflow import DAG, ExternalTaskSensor, FileSensor, HttpSensor, SqlSensor, TaskInstanceState, TriggerDagRunOperator
from evenflow.core.ending import Ending
from evenflow.errors import BadSetting
from evenflow.sdk.triggers import load
from evenflow.sdk.trying.runner import TryContext, run_try
from tests.sdk.recording import Recorder
from tests.triggers.conftest import Server

SUCCESS, FAILED, SKIPPED = TaskInstanceState.SUCCESS, TaskInstanceState.FAILED, TaskInstanceState.SKIPPED


def end_of(sensor: type, **arguments: Any) -> TaskInstanceState:
    with DAG("d") as dag:
        sensor(task_id="s", **{"poke_interval": 0.1, **arguments})
    return dag.test(print_logs=False).tasks[0].state


@pytest.fixture
def api(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setenv("EVENFLOW_CONN_HTTP_DEFAULT", server.url)
    return server


@pytest.mark.parametrize("deferrable", [False, True])
def test_http(api: Server, deferrable: bool) -> None:
    how: dict[str, Any] = {"endpoint": "job", "deferrable": deferrable}
    api.replies = [(404, {}), (404, {}), (200, {"state": "done"})]
    assert end_of(HttpSensor, **how) is SUCCESS
    assert len(api.asked) >= 3
    api.replies = [(200, {"state": "running"}), (200, {"state": "failed"})]
    assert end_of(HttpSensor, **how, field="state", values=["done"], failed_values=["failed"]) is FAILED
    api.replies = [(403, {})]
    assert end_of(HttpSensor, **how) is FAILED
    assert end_of(HttpSensor, **how, never_fail=True) is SKIPPED
    assert end_of(HttpSensor, **how, response_error_codes_allowlist=["403"], timeout=0, soft_fail=True) is SKIPPED


def test_http_with_a_function(api: Server) -> None:
    """As with Airflow; it may take entries of the context."""
    api.replies = [(200, {"n": n}) for n in (1, 2, 3)]

    def enough(response: Any, run_id: str) -> bool:
        assert run_id
        assert (response.status_code, response.ok) == (200, True)
        return response.json()["n"] >= 3 and '"n"' in response.text

    assert end_of(HttpSensor, endpoint="x", response_check=enough) is SUCCESS
    assert len(api.asked) == 3


def test_http_sends(api: Server) -> None:
    assert end_of(HttpSensor, endpoint="x", request_params={"day": "{{ run_id and 1 }}"}) is SUCCESS
    assert end_of(HttpSensor, endpoint="x", method="POST", request_params={"day": "1"}) is SUCCESS
    assert [(asked.method, asked.path, asked.body) for asked in api.asked] == [
        ("GET", "/x?day=1", b""),
        ("POST", "/x", b'{"day": "1"}'),
    ]


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "shop.db"
    monkeypatch.setenv("EVENFLOW_CONN_SHOP", f"sqlite:///{path}")
    with sqlite3.connect(path) as shop:
        shop.execute("create table orders (n int)")
        shop.execute("insert into orders values (5)")
    shop.close()
    return path


@pytest.mark.parametrize("deferrable", [False, True])
def test_sql(orders: Path, deferrable: bool) -> None:
    how: dict[str, Any] = {"conn_id": "shop", "timeout": 0, "soft_fail": True, "deferrable": deferrable}
    assert end_of(SqlSensor, **how, sql="select n from orders where n > ?", parameters=[4]) is SUCCESS
    assert end_of(SqlSensor, **how, sql="select n - 5 from orders") is SKIPPED
    assert end_of(SqlSensor, **how, sql="select n from orders where n > 5") is SKIPPED
    assert end_of(SqlSensor, **how, sql="select n from orders where n > 5", fail_on_empty=True) is FAILED
    assert end_of(SqlSensor, **how, sql="select n from nowhere") is FAILED


def test_sql_with_functions(orders: Path) -> None:
    how: dict[str, Any] = {"conn_id": "shop", "sql": "select n, n + 1 from orders", "timeout": 0, "soft_fail": True}
    assert end_of(SqlSensor, **how, success=lambda n: n == 5) is SUCCESS
    assert end_of(SqlSensor, **how, success=lambda n: n == 6) is SKIPPED
    assert end_of(SqlSensor, **how, success=lambda n: n == 6, selector=lambda row: row[1]) is SUCCESS
    assert end_of(SqlSensor, **how, failure=lambda n: n == 5) is FAILED


def test_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENFLOW_CONN_FILES", f"file://{tmp_path}")
    assert deferred(FileSensor, filepath="in/*.csv", poke_interval=0)[1] == {
        "filepath": str(tmp_path / "in" / "*.csv"),
        "recursive": False,
        "poll_interval": 0.1,
    }
    assert deferred(FileSensor, filepath="in", fs_conn_id="files")[1]["filepath"] == str(tmp_path / "in")
    (tmp_path / "in").touch()
    assert end_of(FileSensor, filepath="in", deferrable=True) is SUCCESS


def deferred(kind: type, answer: Any = None, **arguments: Any) -> tuple[Ending, dict[str, Any]]:
    """What the try says, and the arguments of its trigger, which can be made of them."""
    with DAG("d") as dag:
        kind(task_id="t", **arguments, deferrable=True)
    day = datetime(2026, 3, 1, tzinfo=UTC)
    recorder = Recorder()
    recorder.answers = {"states": answer, "trigger": answer}
    ctx = TryContext(dag_id="d", run_id="r", task_id="t", run_after=day, logical_date=day)
    result = run_try(dag, ctx, recorder)
    assert result.outcome == "deferred", result
    assert result.defer is not None
    load(result.defer.trigger, result.defer.trigger_kwargs)
    return result, result.defer.trigger_kwargs


def test_external_task() -> None:
    nothing: dict[str, Any] = {"runs": [], "missing": []}
    result, arguments = deferred(
        ExternalTaskSensor, nothing, external_dag_id="other", external_task_id="a", failed_states=["failed"], poke_interval=7
    )
    assert result.defer is not None
    assert result.defer.trigger == "evenflow.triggers.external.ExternalTaskTrigger"
    assert arguments["logical_dates"] == ["2026-03-01T00:00:00+00:00"]
    assert (arguments["dag_id"], arguments["task_ids"], arguments["poll_interval"]) == ("other", ["a"], 7)
    assert (arguments["allowed_states"], arguments["failed_states"]) == (["success"], ["failed"])


def test_triggered_run() -> None:
    running = {"run_id": "made", "state": "running", "is_own": True}
    result, arguments = deferred(TriggerDagRunOperator, running, trigger_dag_id="other", wait_for_completion=True)
    assert (arguments["dag_id"], arguments["run_ids"], arguments["failed_states"]) == ("other", ["made"], ["failed"])
    assert result.defer is not None
    assert (result.defer.method, result.defer.kwargs) == ("completed", {"run_id": "made"})


@pytest.mark.parametrize(
    ("kind", "wrong", "said"),
    [
        (HttpSensor, {"endpoint": "x", "response_check": bool, "deferrable": True}, "a triggerer runs no function of a DAG file"),
        (HttpSensor, {"endpoint": "x", "values": ["done"]}, "field='state'"),
        (HttpSensor, {"endpoint": "x", "response_error_codes_allowlist": ["4xx"]}, "'4xx', which is no HTTP status"),
        (SqlSensor, {"conn_id": "c", "sql": "x", "success": bool, "deferrable": True}, "Say in the statement what is waited for"),
    ],
)
def test_settings_are_checked(kind: type, wrong: dict[str, Any], said: str) -> None:
    with DAG("d"), pytest.raises(BadSetting, match=said):
        kind(task_id="s", **wrong)
