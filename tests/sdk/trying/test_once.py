"""Waiting without async: what a task does once stays done, across retries, deferrals and deaths."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow import DAG, BaseOperator, TaskInstance, get_current_context, task
from evenflow.sdk.trying.runner import run_try
from tests.sdk.recording import Recorder, context
from tests.sdk.waiting_triggers import Says


def test_it_is_done_once_over_all_tries() -> None:
    submitted: list[str] = []
    tries: list[Any] = []

    def submit() -> str:
        submitted.append("job")
        return f"job {len(submitted)}"

    with DAG("d") as dag:

        @task(retries=2)
        def run(ti: TaskInstance) -> Any:
            tries.append((ti.once("submit", submit), ti.once_key("submit")))
            if len(tries) < 3:
                raise OSError("the worker died")
            return tries[0][0]

        run()
    result = dag.test(print_logs=False)
    assert (result.result("run"), len(submitted), len(set(tries))) == ("job 1", 1, 1)


def test_forgetting_begins_anew() -> None:
    with DAG("d") as dag:

        @task
        def run(ti: TaskInstance) -> list[Any]:
            made = iter("ab")
            first = ti.once("x", lambda: next(made)), ti.once_key("x")
            ti.forget("x")
            gone = ti.once_value("x", "nothing")
            second = ti.once("x", lambda: next(made)), ti.once_key("x")
            return [first[0], gone, second[0], ti.once_value("x"), first[1] != second[1]]

        run()
    assert dag.test(print_logs=False).result("run") == ["a", "nothing", "b", "b", True]


def test_the_context_has_it_too_and_an_async_function_is_awaited() -> None:
    calls: list[int] = []

    async def submit() -> tuple[str, int]:
        calls.append(1)
        return "job", len(calls)

    with DAG("d") as dag:

        @task
        async def run() -> Any:
            kept = get_current_context()
            return [await kept.once("submit", submit), await kept.once("submit", submit), kept.once_value("submit")]

        run()
    assert dag.test(print_logs=False).result("run") == [("job", 1)] * 3


def test_instances_keep_their_own() -> None:
    with DAG("d") as dag:

        @task
        def run(ti: TaskInstance, n: int) -> Any:
            return ti.once("n", lambda: n)

        run.expand(n=[1, 2])
    assert dag.test(print_logs=False).result("run") == [1, 2]


def test_what_another_has_stored_meanwhile_counts() -> None:
    """Two processes of one try, of which one was thought dead: both go on with what was stored first."""
    with DAG("d") as dag:

        @task
        def run(ti: TaskInstance) -> Any:
            return ti.once("submit", lambda: "late")

        run()
    channel = Recorder()
    channel.answers = {
        "once": {"key": "k", "kept": None},
        "set_once": {"key": "k", "kept": {"value": "early"}},
    }
    assert run_try(dag, context("run"), channel).result == b'"early"'
    assert channel.asked[-2:] == [("once", {"name": "submit"}), ("set_once", {"name": "submit", "kept": {"value": "late"}})]


def test_it_lives_across_a_deferral() -> None:
    class Job(BaseOperator):
        def execute(self, context: Any) -> None:
            self.defer(trigger=Says(context["ti"].once("submit", lambda: "job 1")), method_name="done")

        def done(self, context: Any, event: Any) -> Any:
            return [event, context["ti"].once("submit", lambda: "job 2")]

    with DAG("d") as dag:
        Job(task_id="t")
    assert dag.test(print_logs=False).result("t") == ["job 1", "job 1"]


async def _later() -> None: ...


@pytest.mark.parametrize(
    ("name", "function", "said"),
    [
        ("", str, "the name must be a string of 1 to 250 printable characters, not ''"),
        ("a\nb", str, "printable characters"),
        ("x", "job 1", "takes a function without arguments, e.g. lambda: submit(x), not 'job 1'"),
        ("x", lambda: "y" * 70_000, "is 70,002 bytes as JSON, above the limit of 65,536. Keep an id or a path."),
        ("x", lambda: object(), "has a value of type builtins.object"),
        ("x", lambda: _later(), "returned something to be awaited. Give an `async def`, and await once"),
    ],
)
@pytest.mark.filterwarnings("ignore:coroutine")
def test_what_cannot_be_kept_is_told(name: str, function: Any, said: str) -> None:
    with DAG("d") as dag:

        @task
        def run(ti: TaskInstance) -> Any:
            return ti.once(name, function)

        run()
    assert said in str(dag.test(print_logs=False).tasks[0].reason)
