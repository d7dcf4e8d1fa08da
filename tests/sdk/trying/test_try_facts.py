"""What a try is told of itself, what it need not keep, and what is said of a template that is wrong."""

from __future__ import annotations

import socket
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from evenflow import DAG, BashOperator, task
from evenflow.core.callbacks import CallbackOf
from evenflow.sdk.trying.callback_run import run_callback
from evenflow.sdk.trying.runner import run_try
from tests.sdk.recording import Recorder, context


def test_a_task_instance_has_the_facts_of_airflows(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Any] = []
    with DAG("d") as dag:

        @task(retries=3)
        def t(ti: Any) -> None:
            seen.extend((ti.start_date, ti.end_date, ti.duration, ti.hostname, ti.max_tries, ti.log_url))

        t()
    before = datetime.now(UTC)
    ctx = context("t", max_tries=4, try_number=2, run_id="a b", api_url="http://api:1")
    assert run_try(dag, ctx, Recorder()).outcome == "success"
    assert before <= seen[0] <= datetime.now(UTC)
    assert seen[1:] == [
        None,
        None,
        socket.gethostname(),
        3,
        "http://api:1/api/v1/dags/d/runs/a%20b/tasks/t/logs?map_index=-1&try_number=2",
    ]


def test_a_callback_knows_how_long_the_try_took() -> None:
    seen: list[Any] = []
    with DAG("d") as dag:

        @task(on_failure_callback=lambda context: seen.append((context["ti"].start_date, context["ti"].duration)))
        def t() -> None: ...

        t()
    began = datetime(2026, 1, 1, tzinfo=UTC)
    told = {"event": "on_failure_callback", "position": 0, "state": "failed", "started_at": began.isoformat()}
    ended = (began + timedelta(seconds=5)).isoformat()
    for times in ({"ended_at": ended}, {"ended_at": None}):
        called = CallbackOf(**told, **times)
        assert run_callback(dag, context("t"), called, Recorder()).outcome == "success"
    assert seen == [(began, 5.0), (began, None)]


def test_a_result_that_is_not_to_be_kept_is_not() -> None:
    with DAG("d") as dag:

        @task(do_xcom_push=False)
        def silent() -> int:
            return 3

        @task
        def reads(value: Any) -> str:
            return f"got {value}"

        reads(silent())
    assert run_try(dag, context("silent"), Recorder()).result is None
    run = dag.test(print_logs=False)
    run.raise_on_failure()
    assert run.result("reads") == "got None"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "echo\n{{ 1 / 0 }}\n",
            "bash_command cannot be rendered, line 2 ({{ 1 / 0 }}): ZeroDivisionError: division by zero",
        ),
        ("a\n\n  {{ nope }} b", "bash_command cannot be rendered, line 3 ({{ nope }} b): 'nope' is undefined"),
        ("{{ ds }}\n{{ boom() }}", "bash_command cannot be rendered, line 2 ({{ boom() }}): KeyError: 'k'"),
    ],
)
def test_a_template_that_fails_names_its_line(text: str, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    def boom() -> str:
        return {}["k"]

    with DAG("d", user_defined_macros={"boom": boom}) as dag:
        BashOperator(task_id="t", bash_command=text)
    result = run_try(dag, context("t"), Recorder())
    assert said in (result.reason or "")
    shown = capfd.readouterr().err
    assert "evenflow/sdk" not in shown
    assert "jinja2" not in shown
    assert ("in boom" in shown) == ("boom" in text)


def test_a_branch_in_another_python() -> None:
    with DAG("d") as dag:

        @task.branch_external_python(python=sys.executable)
        def choose(n: int) -> str:
            return "left" if n else "right"

        @task
        def left() -> None: ...

        @task
        def right() -> None: ...

        choose(1) >> [left(), right()]
    run = dag.test(print_logs=False)
    assert run.states == {"choose": "success", "left": "success", "right": "skipped"}
    assert dag.to_spec().tasks[0].operator == "branch_external_python"


def test_a_branch_in_an_environment_is_declared_alike() -> None:
    with DAG("d") as dag:

        @task.branch_virtualenv(requirements=[], venv_cache_path=Path("/nowhere"))
        def choose() -> list[str]:
            return ["left"]

        choose()
    assert dag.to_spec().tasks[0].operator == "branch_virtualenv"


def test_values_of_other_runs() -> None:
    with DAG("d") as dag:

        @task
        def t(ti: Any) -> list[Any]:
            return [
                ti.xcom_pull("t", run_id="other"),
                ti.xcom_pull(["t"], run_id="none", default=0),
                ti.xcom_pull("t", key="k", include_prior_dates=True),
                ti.xcom_pull("t", key="own", run_id=ti.run_id),
            ]

        t()
    recorder = Recorder({("t", "own", -1): 5})
    recorder.other_run, recorder.answers["prior_run"] = "other", {"run_id": "other"}
    assert run_try(dag, context("t"), recorder).result == b'["t of other",[0],"t of other",5]'
    assert [q for q in recorder.asked if q[0] != "mask"] == [("prior_run", {"task_id": "t", "key": "k", "map_index": -1})]


def test_values_of_another_dag_cannot_be_had() -> None:
    with DAG("d") as dag:

        @task
        def t(ti: Any) -> Any:
            return ti.xcom_pull("t", dag_id="else")

        t()
    result = run_try(dag, context("t"), Recorder())
    assert "wants a value of DAG 'else', which xcom_pull does not give" in (result.reason or "")
