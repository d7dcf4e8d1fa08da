"""Tasks that trigger and await runs of other DAGs, by what the control plane answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evenflow import DAG, ExternalTaskSensor, TriggerDagRunOperator
from evenflow.core.ending import Ending
from evenflow.errors import BadSetting
from evenflow.sdk.trying.runner import run_try
from tests.sdk.recording import Recorder, context

DAY = datetime(2026, 3, 1, tzinfo=UTC)


def run(operator: type, answer: dict[str, Any], **arguments: Any) -> tuple[Ending, Recorder]:
    with DAG("d") as dag:
        operator(task_id="t", **arguments)
    recorder = Recorder()
    recorder.answers = {"trigger": answer, "states": answer, "waited": {"waited_s": 0.0}}
    return run_try(dag, context("t", logical_date=DAY), recorder), recorder


def triggered(state: str = "queued", *, is_own: bool = True, **arguments: Any) -> Ending:
    answer = {"run_id": "r1", "state": state, "is_own": is_own}
    return run(TriggerDagRunOperator, answer, trigger_dag_id="other", **arguments)[0]


def test_trigger() -> None:
    answer = {"run_id": "r1", "state": "queued", "is_own": True}
    result, recorder = run(TriggerDagRunOperator, answer, trigger_dag_id="other", conf={"n": 1}, logical_date=DAY)
    assert (result.outcome, result.result) == ("success", b'"r1"')
    assert recorder.pushed == {"trigger_run_id": "r1"}
    ((_, question),) = [asked for asked in recorder.asked if asked[0] == "trigger"]
    assert question == {
        "dag_id": "other",
        "run_id": None,
        "logical_date": DAY.isoformat(),
        "conf": {"n": 1},
        "reset": False,
        "fail_when_paused": False,
    }


def test_trigger_and_wait() -> None:
    waits = triggered("running", wait_for_completion=True, poke_interval=timedelta(minutes=2))
    assert (waits.outcome, waits.delay_s) == ("rescheduled", 120.0)
    assert triggered("success", wait_for_completion=True).outcome == "success"
    failed = triggered("failed", wait_for_completion=True)
    assert failed.outcome == "failed_for_good"
    assert "clear this task" in (failed.reason or "")
    assert triggered("failed", wait_for_completion=True, failed_states=[], allowed_states=["failed"]).outcome == "success"


def test_trigger_what_is_there() -> None:
    assert triggered(is_own=False).outcome == "failed_for_good"
    assert triggered(is_own=False, skip_when_already_exists=True).outcome == "skipped"


def awaited(*runs: dict[str, Any], missing: list[str] | None = None, **arguments: Any) -> Ending:
    answer = {"runs": list(runs), "missing": [] if missing is None else missing}
    return run(ExternalTaskSensor, answer, external_dag_id="other", mode="reschedule", **arguments)[0]


def a_run(state: str = "success", **tasks: dict[str, int]) -> dict[str, Any]:
    return {"run_id": "r", "logical_date": DAY.isoformat(), "state": state, "counts": tasks}


def test_await_a_run() -> None:
    assert awaited(a_run()).outcome == "success"
    assert awaited(a_run("running")).outcome == "rescheduled"
    assert awaited().outcome == "rescheduled"
    assert awaited(a_run("failed")).outcome == "rescheduled", "as in Airflow: it may yet be run again"
    assert awaited(a_run("failed"), failed_states=["failed"]).outcome == "failed_for_good"
    assert awaited(a_run("failed"), failed_states=["failed"], soft_fail=True).outcome == "skipped"
    assert awaited(a_run("failed"), skipped_states=["failed"]).outcome == "skipped"
    assert awaited(a_run("failed"), allowed_states=["success", "failed"]).outcome == "success"


def test_await_tasks() -> None:
    done, half, none = {"success": 3}, {"success": 2, "running": 1}, dict[str, int]()
    assert awaited(a_run("running", a=done), external_task_id="a").outcome == "success"
    assert awaited(a_run("running", a=half), external_task_id="a").outcome == "rescheduled"
    assert awaited(a_run("running", a=done, b=none), external_task_ids=["a", "b"]).outcome == "rescheduled"
    assert awaited(a_run("running", a=half, b=done), external_task_group_id="g", failed_states=["running"]).outcome == (
        "failed_for_good"
    )


def test_which_runs() -> None:
    def dates(**arguments: Any) -> list[str]:
        _, recorder = run(ExternalTaskSensor, {"runs": [], "missing": []}, external_dag_id="o", mode="reschedule", **arguments)
        return next(question["logical_dates"] for name, question in recorder.asked if name == "states")

    assert dates() == [DAY.isoformat()]
    assert dates(execution_delta=timedelta(days=1)) == ["2026-02-28T00:00:00+00:00"]
    assert dates(execution_date_fn=lambda date: [date, date + timedelta(hours=1)]) == [DAY.isoformat(), "2026-03-01T01:00:00+00:00"]
    assert dates(execution_date_fn=lambda date, context: date + timedelta(days=len(context["run_id"]))) == [
        "2026-03-02T00:00:00+00:00"
    ]


def test_existence() -> None:
    assert awaited(missing=["a"], external_task_id="a").outcome == "rescheduled"
    assert awaited(missing=["a"], external_task_id="a", check_existence=True).outcome == "failed_for_good"
    result, _ = run(ExternalTaskSensor, {"runs": [], "missing": None}, external_dag_id="other", check_existence=True)
    assert "no DAG 'other'" in (result.reason or "")


def test_settings_are_checked() -> None:
    with DAG("d"):
        for wrong in (
            {"external_task_id": "a", "external_task_ids": ["b"]},
            {"execution_delta": timedelta(1), "execution_date_fn": lambda date: date},
            {"allowed_states": ["done"]},
        ):
            with pytest.raises(BadSetting):
                ExternalTaskSensor(task_id="t", external_dag_id="other", **wrong)


def test_alone() -> None:
    """``dag.test()`` runs no other DAG."""
    with DAG("d") as dag:
        TriggerDagRunOperator(task_id="go", trigger_dag_id="other", wait_for_completion=True)
        ExternalTaskSensor(task_id="wait", external_dag_id="other", external_task_id="a")
    dag.test(print_logs=False).raise_on_failure()
