"""``on_kill``: what a try has started outside is stopped when the try ends early, in its process or in one for that alone."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow import DAG, BaseOperator, EmptyOperator, PythonSensor, TaskInstance, get_current_context, task, wait_for
from evenflow.core.model import DagSpec
from evenflow.errors import BadSetting
from evenflow.sdk.trying import killing
from evenflow.sdk.trying.runner import run_try
from tests.sdk.recording import Recorder, context
from tests.sdk.waiting_triggers import Says


class Job(BaseOperator):
    def __init__(self, *, stopped: list[Any], **options: Any) -> None:
        super().__init__(**options)
        self.stopped = stopped

    def execute(self, context: Any) -> None:
        self.job = context["ti"].once("submit", lambda: "job 1")
        self.defer(trigger=Says("kept"), method_name="done")

    def done(self, context: Any, event: Any) -> None:
        raise AssertionError("it is not to go on")

    def on_kill(self) -> None:
        self.stopped.append(get_current_context().once_value("submit"))


def resumed(**fields: Any) -> dict[str, Any]:
    path = "tests.sdk.waiting_triggers.Says"
    told = {"trigger": path, "trigger_kwargs": {"payload": "its trigger"}, "method": "done", "kwargs": {}}
    return {"purpose": "clean_up", **told, "reason": "cancelled by ann", **fields}


def kept_job() -> Recorder:
    channel = Recorder()
    channel.answers = {"once": {"key": "k", "kept": {"value": "job 1"}}}
    return channel


@pytest.fixture
def armed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    told: list[bool] = []
    monkeypatch.setattr(killing, "on_armed", told.append)
    monkeypatch.setattr(killing, "_executing", None)
    return told


def test_a_clean_up_stops_the_job_and_its_trigger() -> None:
    stopped: list[Any] = []
    Says.stopped.clear()
    with DAG("d") as dag:
        Job(task_id="t", stopped=stopped, on_kill_callback=lambda context: stopped.append(context["ti"].task_id))
    result = run_try(dag, context("t", resumed=resumed()), kept_job())
    assert (result.outcome, result.reason) == ("failed", "cancelled by ann")
    assert (stopped, Says.stopped) == (["job 1", "t"], ["its trigger"])


@pytest.mark.parametrize("error", [OSError, SystemExit])
def test_a_clean_up_that_fails_is_in_the_log_and_the_rest_is_done(
    error: type[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    """R-DQ9"""

    class Stubborn(Job):
        def on_kill(self) -> None:
            raise error("the cluster does not answer")

    Says.stopped.clear()
    with DAG("d") as dag:
        Stubborn(task_id="t", stopped=[])
    assert run_try(dag, context("t", resumed=resumed()), kept_job()).outcome == "failed"
    assert f"{error.__name__}: the cluster does not answer" in capsys.readouterr().err
    assert Says.stopped == ["its trigger"]


def test_a_clean_up_runs_though_its_templates_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    class Templated(Job):
        template_fields = ("path",)

        def __init__(self, *, path: str, **options: Any) -> None:
            super().__init__(**options)
            self.path = path

    stopped: list[Any] = []
    with DAG("d") as dag:
        Templated(task_id="t", stopped=stopped, path="{{ no_such_name }}")
    assert run_try(dag, context("t", resumed=resumed()), kept_job()).outcome == "failed"
    assert stopped == ["job 1"]
    assert "no_such_name" in capsys.readouterr().err


def test_a_running_operator_is_killed_once(armed: list[bool]) -> None:
    stopped: list[str] = []
    with DAG("d") as dag:

        class Long(BaseOperator):
            def execute(self, context: Any) -> None:
                killing.kill_current()
                killing.kill_current()

            def on_kill(self) -> None:
                stopped.append(self.task_id)

        Long(task_id="t")
    assert run_try(dag, context("t"), Recorder()).outcome == "success"
    assert (stopped, armed) == (["t"], [True, False])
    killing.kill_current()
    assert stopped == ["t"]


async def test_async_callbacks_run_where_a_loop_runs(armed: list[bool]) -> None:
    """As when a signal comes while an async function runs."""
    stopped: list[str] = []

    async def stop(context: Any) -> None:
        stopped.append(context["ti"].task_id)

    with DAG("d") as dag:

        @task(on_kill_callback=stop)
        async def f() -> None:
            killing.kill_current()

        f()
    assert run_try(dag, context("f"), Recorder()).outcome == "success"
    assert (stopped, armed) == (["f"], [True, False])


def test_between_deferring_and_its_report_the_job_can_still_be_stopped(armed: list[bool]) -> None:
    stopped: list[Any] = []
    Says.stopped.clear()
    with DAG("d") as dag:
        Job(task_id="t", stopped=stopped)
    assert run_try(dag, context("t"), kept_job()).outcome == "deferred"
    assert armed == [True]
    killing.kill_current()
    killing.kill_current()
    assert (stopped, Says.stopped) == (["job 1"], ["kept"])


def test_nothing_is_armed_for_what_has_nothing_to_stop(armed: list[bool]) -> None:
    with DAG("d") as dag:
        EmptyOperator(task_id="e")

        @task
        async def f() -> Any:
            return await wait_for(Says(1))

        f()
    assert run_try(dag, context("e"), Recorder()).outcome == "success"
    assert run_try(dag, context("f"), Recorder()).outcome == "deferred"
    assert armed == []


def test_a_failed_deferral_is_an_end(armed: list[bool]) -> None:
    class Wrong(Job):
        def execute(self, context: Any) -> None:
            self.defer(trigger=Says(1), method_name="nothing_such")

    with DAG("d") as dag:
        Wrong(task_id="t", stopped=[])
    assert run_try(dag, context("t"), Recorder()).outcome == "failed"
    assert armed == [True, False]


def test_the_spec_says_which_tasks_clean_up() -> None:
    with DAG("d") as dag:
        Job(task_id="job", stopped=[])
        Job.partial(task_id="jobs").expand(stopped=[[1]])
        EmptyOperator(task_id="plain")
        EmptyOperator(task_id="told", on_kill_callback=print)

        @task
        def plain_function(ti: TaskInstance) -> None: ...

        @task
        async def waits() -> None: ...

        plain_function()
        waits()
        waits.override(task_id="waits_too").partial().expand_kwargs([{}])
    clean = {spec.task_id: spec.cleans_up for spec in dag.to_spec().tasks}
    assert clean == {
        "job": True,
        "jobs": True,
        "plain": False,
        "told": True,
        "plain_function": False,
        "waits": True,
        "waits_too": True,
    }
    assert DagSpec.from_json(dag.to_spec().to_json()) == dag.to_spec()


def test_what_is_held_while_it_waits_can_be_chosen() -> None:
    with DAG("d") as dag:
        PythonSensor(task_id="plain", python_callable=bool)
        PythonSensor(task_id="looks", python_callable=bool, deferrable=True)
        PythonSensor.partial(task_id="mapped", python_callable=bool, deferrable=True).expand(op_args=[[1]])
        PythonSensor(task_id="keeps", python_callable=bool, deferrable=True, while_deferred={"pool": "hold", "run": "hold"})
        EmptyOperator(task_id="timed", execution_timeout=5, execution_timeout_counts_waiting=False)
    spec = dag.to_spec()
    assert {task.task_id: task.while_deferred for task in spec.tasks} == {
        "plain": None,
        "looks": {"pool": "release"},
        "mapped": {"pool": "release"},
        "keeps": {"pool": "hold", "run": "hold"},
        "timed": None,
    }
    assert not spec.tasks[-1].execution_timeout_counts_waiting
    assert DagSpec.from_json(spec.to_json()) == spec


@pytest.mark.parametrize("wrong", [{"pools": "hold"}, {"pool": "keep"}, "release", {"pool": None}])
def test_a_choice_that_there_is_not(wrong: Any) -> None:
    with DAG("d"), pytest.raises(BadSetting, match="while_deferred must be a dict from some of 'pool', 'task_limits', 'run'"):
        EmptyOperator(task_id="t", while_deferred=wrong)


def test_a_spec_without_any_of_it_is_as_it_was() -> None:
    with DAG("d") as dag:
        EmptyOperator(task_id="t")
    assert dag.to_spec().to_json() == '{"dag_id":"d","format":1,"tasks":[{"empty":true,"operator":"empty","task_id":"t"}]}'
