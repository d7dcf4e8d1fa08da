"""``await wait_for(...)``: a function that waits begins again from the top, and each await has its event once and for good."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evenflow import (
    DAG,
    BaseTrigger,
    DateTimeTrigger,
    TaskDeferralTimeout,
    TimeDeltaTrigger,
    TriggerFailed,
    get_current_context,
    task,
    wait_for,
)
from evenflow.core.ending import Ending, told
from evenflow.errors import BadDeferral
from evenflow.sdk.trying.runner import run_try
from tests.sdk.recording import Recorder, context
from tests.sdk.waiting_triggers import Breaks, Says


def of(function: Callable[..., Any], **options: Any) -> DAG:
    with DAG("d") as dag:
        task(task_id="t", **options)(function)()
    return dag


def tried(dag: DAG, resumed: dict[str, Any] | None = None) -> Ending:
    return run_try(dag, context("t", resumed=resumed), Recorder())


def resumed(result: Ending, event: Any = None, *, purpose: str = "event", **more: Any) -> dict[str, Any]:
    """As the scheduler sends a deferred try back."""
    assert result.defer is not None, result.reason
    return {**told(result.defer), "purpose": purpose, "event": event, **more}


def test_it_begins_again_and_each_await_has_its_event() -> None:
    begun, events = [], []

    async def f() -> list[Any]:
        begun.append(1)
        events.append(await wait_for(Says("a")))
        events.append(await wait_for(Says("b")))
        await asyncio.sleep(0)
        return [get_current_context()["ti"].task_id, *events]

    dag = of(f)
    first = tried(dag)
    assert (first.outcome, first.defer.trigger_kwargs["payload"]) == ("deferred", "a")  # type: ignore[union-attr]
    second = tried(dag, resumed(first, "A"))
    assert (second.outcome, second.defer.trigger_kwargs["payload"]) == ("deferred", "b")  # type: ignore[union-attr]
    events.clear()
    assert tried(dag, resumed(second, "B")).result == b'["t","A","B"]'
    assert len(begun) == 3


def test_nothing_behind_an_await_runs_when_it_waits() -> None:
    """Neither ``finally`` nor ``except``: the function has not ended."""
    ran = []

    async def f() -> None:
        try:
            await wait_for(Says(1))
        except BaseException:
            ran.append("except")
            raise
        finally:
            ran.append("finally")

    dag = of(f)
    first = tried(dag)
    import gc

    gc.collect()
    assert (first.outcome, ran) == ("deferred", [])
    assert tried(dag, resumed(first)).outcome == "success"
    assert ran == ["finally"]


def test_a_timeout_and_a_failure_are_raised_where_it_waits() -> None:
    async def f() -> list[str]:
        said = []
        try:
            await wait_for(Says(1), timeout=timedelta(seconds=3))
        except TaskDeferralTimeout as error:
            said.append(str(error))
        try:
            await wait_for(Breaks())
        except TriggerFailed as error:
            said.append(str(error))
        return said

    dag = of(f)
    first = tried(dag)
    assert first.defer is not None
    assert first.defer.timeout_s == 3.0
    second = tried(dag, resumed(first, purpose="timeout", deferred_s=3.0))
    last = tried(dag, resumed(second, purpose="failed", deferred_s=0.5, reason="OSError: no route"))
    assert last.result is not None
    assert b"Task 't' waited 3.0 s for Says, which is its timeout." in last.result
    assert b"waited 0.5 s for Breaks, which failed: OSError: no route" in last.result


@pytest.mark.parametrize(
    ("first", "later", "said"),
    [
        (
            lambda: Says(1),
            lambda: Breaks(),
            "was for tests.sdk.waiting_triggers.Says and is now for tests.sdk.waiting_triggers.Breaks",
        ),
        (lambda: Says(1), lambda: Says(2), "is now for another tests.sdk.waiting_triggers.Says"),
    ],
)
def test_another_trigger_at_the_same_await_is_told(
    first: Callable[[], BaseTrigger], later: Callable[[], BaseTrigger], said: str
) -> None:
    made = [first, later]

    async def f() -> None:
        await wait_for(made.pop(0)())

    dag = of(f)
    result = tried(dag, resumed(tried(dag)))
    assert (result.outcome, result.error_types[0]) == ("failed", "evenflow.errors.BadDeferral")
    assert "The await number 1 of this function" in str(result.reason)
    assert said in str(result.reason)


def test_a_delay_is_the_same_each_time_it_is_come_to() -> None:
    async def f() -> Any:
        return await wait_for(TimeDeltaTrigger(timedelta(hours=1)))

    dag = of(f)
    assert tried(dag, resumed(tried(dag), "then")).result == b'"then"'


def test_awaits_side_by_side_wait_one_after_the_other() -> None:
    async def f() -> list[Any]:
        return await asyncio.gather(wait_for(Says("a")), wait_for(Says("b")))

    dag = of(f)
    second = tried(dag, resumed(tried(dag), "A"))
    assert tried(dag, resumed(second, "B")).result == b'["A","B"]'


def test_an_async_function_that_does_not_wait() -> None:
    async def f() -> int:
        await asyncio.sleep(0)
        return 3

    assert tried(of(f)).result == b"3"


def test_an_async_function_that_fails_says_where(capsys: pytest.CaptureFixture[str]) -> None:
    async def f() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    assert tried(of(f)).reason == "ValueError: no"
    assert 'raise ValueError("no")' in capsys.readouterr().err


async def test_it_runs_where_a_loop_runs_already() -> None:
    """As in a notebook."""

    async def f() -> Any:
        return await wait_for(Says(7))

    run = of(f).test(print_logs=False)
    run.raise_on_failure()
    assert run.result("t") == 7


def test_a_plain_function_cannot_wait() -> None:
    def f() -> Any:
        return wait_for(Says(1))

    result = tried(of(f))
    assert "wait_for() was called where no async task function is running. Write `async def` under @task" in str(result.reason)
    with pytest.raises(BadDeferral):
        wait_for(Says(1))


def test_it_waits_for_triggers_only() -> None:
    async def f() -> Any:
        return await wait_for(datetime.now(UTC))  # type: ignore[arg-type]

    assert "wait_for() takes a trigger, e.g. TimeDeltaTrigger(timedelta(hours=1))" in str(tried(of(f)).reason)


def test_a_moment_of_now_is_told_apart() -> None:
    moments = iter([datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)])

    async def f() -> Any:
        return await wait_for(DateTimeTrigger(next(moments)))

    dag = of(f)
    assert "wait for times with TimeDeltaTrigger" in str(tried(dag, resumed(tried(dag))).reason)


def test_guards_are_asked_once() -> None:
    asked: list[int] = []

    def once(context: Any) -> bool:
        asked.append(1)
        return len(asked) == 1

    with DAG("d") as dag:

        @task.run_if(once)
        @task(task_id="t")
        async def f() -> Any:
            return await wait_for(Says(1))

        f()
    assert tried(dag, resumed(tried(dag), 1)).result == b"1"
    assert asked == [1]


def test_a_branch_may_wait() -> None:
    with DAG("d") as dag:

        @task.branch
        async def choose() -> Any:
            return await wait_for(Says("left"))

        @task
        def left() -> None: ...

        @task
        def right() -> None: ...

        choose() >> [left(), right()]
    run = dag.test(print_logs=False)
    assert {name: str(state) for name, state in run.states.items()} == {"choose": "success", "left": "success", "right": "skipped"}


def test_mapped_instances_wait_each_for_its_own() -> None:
    with DAG("d") as dag:

        @task
        async def each(name: str) -> Any:
            return await wait_for(Says(name, after_s=0.01))

        each.expand(name=["a", "b"])
    assert dag.test(print_logs=False).result("each") == ["a", "b"]
    assert dag.to_spec().tasks[0].cleans_up
