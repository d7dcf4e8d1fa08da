"""R-DQ: a try that defers says how it is brought back, one that is back goes on, and what cannot be brought back is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evenflow import DAG, BaseOperator, BaseTrigger, DateTimeTrigger, TaskDeferred, TimeDeltaTrigger, task
from evenflow.core.ending import Defer, Ending
from evenflow.errors import BadDeferral, NoContext
from evenflow.sdk import triggers
from evenflow.sdk.trying.runner import run_try
from tests.sdk.recording import Recorder, context
from tests.sdk.waiting_triggers import Asks, Forgets, Misleads, Says

PATH = "tests.sdk.waiting_triggers.Says"
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


class Waits(BaseOperator):
    def __init__(self, *, how: dict[str, Any], **options: Any) -> None:
        super().__init__(**options)
        self.how = how

    def execute(self, context: Any) -> None:
        context["ti"].xcom_push("before", 1)
        self.defer(**{"method_name": "done", **self.how})

    def done(self, context: Any, event: Any, **kwargs: Any) -> list[Any]:
        return [context["ti"].task_id, event, kwargs]


def tried(how: dict[str, Any], **fields: Any) -> Ending:
    with DAG("d") as dag:
        Waits(task_id="t", how=how)
    return run_try(dag, context("t", **fields), Recorder())


def resumed(**fields: Any) -> dict[str, Any]:
    return {"purpose": "event", "trigger": PATH, "trigger_kwargs": {"payload": "job 1"}, "method": "done", "kwargs": {}, **fields}


def test_what_a_deferred_try_says() -> None:
    how = {"trigger": Says(MOMENT), "kwargs": {"day": MOMENT.date()}, "timeout": timedelta(minutes=1), "queue": "eu"}
    result = tried(how)
    assert (result.outcome, result.reason, result.result) == ("deferred", None, None)
    assert result.defer == Defer(
        trigger=PATH,
        trigger_kwargs={"payload": {"__type__": "datetime", "value": "2026-01-01T00:00:00+00:00"}, "after_s": 0.0},
        method="done",
        kwargs={"day": {"__type__": "date", "value": "2026-01-01"}},
        timeout_s=60.0,
        queue="eu",
    )
    least = tried({"trigger": Says(1)}).defer
    assert least is not None
    assert (least.kwargs, least.timeout_s, least.queue) == ({}, None, None)


def test_the_method_goes_on_with_what_was_kept() -> None:
    kept = tried({"trigger": Says(1), "kwargs": {"moment": MOMENT}}).defer
    assert kept is not None
    result = tried({}, resumed=resumed(kwargs=kept.kwargs, event={"__type__": "tuple", "value": [1, 2]}))
    assert result.outcome == "success"
    assert result.result is not None
    assert b'["t",{"__type__":"tuple","value":[1,2]},{"moment":{"__type__":"datetime"' in result.result


@pytest.mark.parametrize(
    ("purpose", "error", "said"),
    [
        ("timeout", "evenflow.errors.TaskDeferralTimeout", "waited 61.0 s for Says, which is its timeout"),
        ("failed", "evenflow.errors.TriggerFailed", "waited 61.0 s for Says, which failed: OSError: no route"),
    ],
)
def test_a_resume_without_an_event_fails_the_try(purpose: str, error: str, said: str) -> None:
    result = tried({}, resumed=resumed(purpose=purpose, deferred_s=61.0, reason="OSError: no route"))
    assert (result.outcome, result.error_types[0]) == ("failed", error)
    assert said in str(result.reason)


def test_a_method_may_defer_again() -> None:
    class Twice(Waits):
        def done(self, context: Any, event: Any, **kwargs: Any) -> Any:
            self.defer(trigger=Says("second"), method_name="really_done")

        def really_done(self, context: Any, event: Any) -> Any:
            return event

    with DAG("d") as dag:
        Twice(task_id="t", how={})
    again = run_try(dag, context("t", resumed=resumed(event=1)), Recorder())
    assert again.defer is not None
    assert (again.outcome, again.defer.method) == ("deferred", "really_done")


def test_no_except_exception_takes_it() -> None:
    with DAG("d") as dag:

        class Cautious(Waits):
            def execute(self, context: Any) -> None:
                try:
                    raise TaskDeferred(trigger=Says(1), method_name="done")
                except Exception:
                    raise AssertionError("taken") from None

        Cautious(task_id="t", how={})
    assert run_try(dag, context("t"), Recorder()).outcome == "deferred"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"trigger": "in an hour"}, "'in an hour', which is no trigger. Give one, e.g. TimeDeltaTrigger"),
        ({"trigger": Says}, "which is no trigger"),
        ({"trigger": Says(1), "method_name": "later"}, "has no such method. Write def later(self, context, event)"),
        ({"trigger": Says(object())}, "the arguments of Says, 'payload' has a value of type builtins.object"),
        ({"trigger": Says(1), "kwargs": {"a": object()}}, "the kwargs of done(), 'a' has a value of type builtins.object"),
        ({"trigger": Says(1), "kwargs": {1: 2}}, "the kwargs of done() must be a dict with strings as keys"),
        ({"trigger": Says("x" * 70_000)}, "the arguments of Says are 70,028 bytes as JSON, above the limit of 65,536"),
        ({"trigger": Says(1), "timeout": "1h"}, "timeout must be a timedelta or a number of seconds"),
        ({"trigger": Says(1), "queue": ""}, "queue must be a string"),
        (
            {"trigger": Forgets("x")},
            "Forgets does not keep its argument 'path', so it cannot be made again where it runs. Write",
        ),
        ({"trigger": Misleads("Says")}, "serialize() must return the path of a class and a dict of arguments, not 'Sa"),
        (
            {"trigger": Misleads((PATH, {"colour": "red"}))},
            "cannot be made from what it serialised: Says.__init__() got an",
        ),
        ({"trigger": Misleads(("tests.sdk.nowhere.Says", {}))}, "There is no trigger tests.sdk.nowhere.Says here"),
        ({"trigger": Misleads((f"{PATH}.payload", {}))}, f"There is no trigger {PATH}.payload here"),
    ],
)
def test_what_cannot_be_brought_back_is_refused(how: dict[str, Any], said: str) -> None:
    result = tried(how)
    assert result.outcome == "failed"
    assert said in str(result.reason)
    assert str(result.reason).startswith("BadDeferral: ")


def test_a_trigger_of_a_function_is_refused() -> None:
    class Local(BaseTrigger):
        pass

    result = tried({"trigger": Local()})
    assert "Local is defined inside a function: a triggerer could not find it" in str(result.reason)


def test_a_method_that_is_gone() -> None:
    result = tried({}, resumed=resumed(method="was_there"))
    assert "was to go on with Waits.was_there(), which is not there any more. Clear the task." in str(result.reason)


def test_triggers_are_found_by_their_paths() -> None:
    inside = triggers.load(triggers.path_of(Says.Inside), {})
    assert isinstance(inside, Says.Inside)
    assert triggers.is_built_in(triggers.path_of(TimeDeltaTrigger))
    assert not triggers.is_built_in(PATH)


def test_a_delay_is_the_same_moment_for_whoever_takes_it_over() -> None:
    made = TimeDeltaTrigger(timedelta(hours=1))
    path, _ = made.serialize()
    again = triggers.load(path, tried({"trigger": made}).defer.trigger_kwargs)  # type: ignore[union-attr]
    assert isinstance(again, TimeDeltaTrigger)
    assert (again.moment, again.delta) == (made.moment, timedelta(hours=1))
    assert made.identity() == TimeDeltaTrigger(timedelta(hours=1)).identity()


@pytest.mark.parametrize("moment", [datetime(2026, 1, 1), "2026-01-01"])
def test_a_moment_has_a_time_zone(moment: Any) -> None:
    with pytest.raises(BadDeferral, match="needs a datetime with a time zone"):
        DateTimeTrigger(moment)


async def test_a_trigger_that_nothing_runs_cannot_ask() -> None:
    with pytest.raises(NoContext, match="Asks asks the control plane, but nothing runs it"):
        await anext(Asks().run())


def test_a_function_cannot_defer_as_an_operator_does() -> None:
    with DAG("d") as dag:

        @task
        def f() -> None:
            raise TaskDeferred(trigger=Says(1), method_name="done")

        f()
    result = run_try(dag, context("f"), Recorder())
    assert "PythonOperator has no such method" in str(result.reason)
