"""Callbacks and deadlines as authors write them, and how ``dag.test()`` calls them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evenflow import (
    DAG,
    AsyncCallback,
    BaseNotifier,
    DeadlineAlert,
    DeadlineReference,
    EmptyOperator,
    SyncCallback,
    TaskSkipped,
    task,
)
from evenflow.core.callbacks import CallbackOf
from evenflow.core.model import DagSpec, DeadlineSpec
from evenflow.errors import BadSetting
from evenflow.sdk.trying.callback_run import run_callback
from tests.sdk.recording import Recorder, context


class Calls:
    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    def __call__(self, ctx: Any) -> None:
        self.seen.append((ctx["ti"].task_id if "ti" in ctx else None, ctx["state"], ctx["reason"], ctx.get("exception")))


def nothing(ctx: Any) -> None: ...


def test_the_spec_says_which_events_call_how_many_functions() -> None:
    """As data: names, one for each function. ``on_execute_callback`` is not there, for it is no work of its own."""
    with DAG("d", on_failure_callback=[nothing, nothing], default_args={"on_retry_callback": nothing}) as dag:
        EmptyOperator(task_id="a", on_success_callback=[nothing, nothing], on_execute_callback=nothing)
        EmptyOperator(task_id="b", on_retry_callback=None)
    spec = dag.to_spec()
    assert spec.callbacks == ("on_failure_callback",) * 2
    assert [t.callbacks for t in spec.tasks] == [("on_success_callback", "on_success_callback", "on_retry_callback"), ()]
    assert [t.empty for t in spec.tasks] == [False, True]
    assert DagSpec.from_json(spec.to_json()) == spec


@pytest.mark.parametrize("value", ["f", [1], [nothing] * 11])
def test_what_is_no_callback_is_refused(value: Any) -> None:
    with pytest.raises(BadSetting, match="on_failure_callback must be a function that takes the context, or a list of at most 10"):
        DAG("d", on_failure_callback=value)
    with DAG("d"), pytest.raises(BadSetting, match="task 'a': on_success_callback must be a function"):
        EmptyOperator(task_id="a", on_success_callback=value)


def test_in_a_test_run_they_are_called_in_its_process() -> None:
    calls = Calls()
    on = {f"on_{name}_callback": calls for name in ("success", "failure", "retry", "skipped")}
    with DAG("d", on_failure_callback=calls, on_success_callback=nothing, default_args=on) as dag:

        @task(retries=1)
        def bad() -> None:
            raise ValueError("no")

        @task
        def skips() -> None:
            raise TaskSkipped("not today")

        @task
        def below() -> None: ...

        skips() >> EmptyOperator(task_id="good", trigger_rule="all_done")
        bad() >> below()
    dag.test(print_logs=False)
    assert calls.seen[-1] == (None, "failed", "task_failure", "task_failure")
    assert set(calls.seen[:-1]) == {
        ("skips", "skipped", "not today", None),
        ("bad", "up_for_retry", "ValueError: no", "ValueError: no"),
        ("bad", "failed", "ValueError: no", "ValueError: no"),
        ("good", "success", "success", None),
    }
    assert len(calls.seen) == 5


def test_before_execution(capsys: pytest.CaptureFixture[str]) -> None:
    """In the try's process; its error shows in the log and changes nothing."""
    order = []

    def before(ctx: Any) -> None:
        order.append(ctx["ti"].try_number)
        raise RuntimeError("before it began")

    with DAG("d") as dag:

        @task(on_execute_callback=before)
        def t() -> None:
            order.append("t")

        t()
    dag.test().raise_on_failure()
    assert order == [1, "t"]
    assert "RuntimeError: before it began" in capsys.readouterr().err


def test_one_call_runs_one_function() -> None:
    """The one at its position, so that what failed is called again alone."""
    seen: list[str] = []

    def second(ctx: Any) -> None:
        seen.append(ctx["run_id"])
        raise OSError("chat is down")

    with DAG("d") as dag:
        EmptyOperator(task_id="a", on_failure_callback=[nothing, second])
    results = [
        run_callback(
            dag,
            context("a"),
            CallbackOf(event="on_failure_callback", position=position, state="failed", reason="x"),
            Recorder(),
        )
        for position in (0, 1, 2)
    ]
    assert [r.outcome for r in results] == ["success", "failed", "failed"]
    assert [r.reason for r in results[1:]] == [
        "OSError: chat is down",
        "BadArgument: DAG 'd' has no on_failure_callback number 3 on this worker.",
    ]
    assert seen == ["r"]


def test_functions_with_arguments() -> None:
    """``SyncCallback`` and ``AsyncCallback`` as in Airflow: a function or the class of a notifier, with its arguments."""
    told: list[str] = []

    async def later(text: str, context: Any) -> None:
        told.append(f"{text} {context['run_id']}")

    class Tell(BaseNotifier):
        def __init__(self, text: str) -> None:
            self.text = text

        def notify(self, context: Any) -> None:
            told.append(self.text)

    def plain(text: str) -> None:
        told.append(text)

    given = [AsyncCallback(later, {"text": "a"}), SyncCallback(Tell, {"text": "b"}), SyncCallback(plain, {"text": "c"})]
    with DAG("d", on_success_callback=given) as dag:
        EmptyOperator(task_id="a")
    dag.test(run_id="r", print_logs=False)
    assert told == ["a r", "b", "c"]


def test_deadlines_in_the_spec() -> None:
    alerts = [
        DeadlineAlert(DeadlineReference.DAGRUN_QUEUED_AT, timedelta(hours=1), nothing, name="soon"),
        DeadlineAlert(reference=DeadlineReference.DAGRUN_LOGICAL_DATE, interval=timedelta(minutes=5)),
        DeadlineAlert(DeadlineReference.FIXED_DATETIME(datetime(2030, 1, 1, tzinfo=UTC))),
        DeadlineAlert.done_by("07:00", "Europe/Berlin", callback=[nothing, nothing]),
        DeadlineAlert(DeadlineReference.AVERAGE_RUNTIME(5, min_runs=2), timedelta(minutes=10)),
    ]
    with DAG("d", deadline=alerts) as dag:
        EmptyOperator(task_id="a")
    spec = dag.to_spec()
    assert spec.deadlines == (
        DeadlineSpec(name="soon", reference="queued_at", interval=3600.0, callbacks=1),
        DeadlineSpec(name="0:05:00 after logical_date", reference="logical_date", interval=300.0),
        DeadlineSpec(name="by 2030-01-01T00:00:00+00:00", reference="fixed_datetime", at="2030-01-01T00:00:00+00:00"),
        DeadlineSpec(name="by 07:00 Europe/Berlin", reference="time_of_day", at="07:00:00", timezone="Europe/Berlin", callbacks=2),
        DeadlineSpec(name="0:10:00 after average_runtime", reference="average_runtime", interval=600.0, runs=5, least=2),
    )
    assert DagSpec.from_json(spec.to_json()) == spec


def test_what_is_no_deadline_is_refused() -> None:
    with pytest.raises(BadSetting, match="deadline must be a DeadlineAlert, or a list of at most 20"):
        DAG("d", deadline="07:00")  # type: ignore[arg-type]
    with pytest.raises(BadSetting, match="needs a datetime with a time zone"):
        DeadlineReference.FIXED_DATETIME(datetime(2030, 1, 1))
    with pytest.raises(BadSetting, match="not max_runs=3, min_runs=4"):
        DeadlineReference.AVERAGE_RUNTIME(3, min_runs=4)
    with pytest.raises(BadSetting, match="Give a time such as '07:00' and a zone"):
        DeadlineAlert.done_by("7 o'clock")
    with pytest.raises(BadSetting, match="Give a time such as '07:00' and a zone"):
        DeadlineAlert.done_by("07:00", "Europe/Nowhere")
