"""Deferred tasks in memory: triggers pass the time of the run, beside everything else, and nobody waits for them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow import (
    DAG,
    BaseOperator,
    BaseTrigger,
    DateTimeSensor,
    DayOfWeekSensor,
    PythonSensor,
    TaskDeferralTimeout,
    TaskFailedForGood,
    TimeDeltaSensor,
    TimeDeltaTrigger,
    TimeSensor,
    TriggerEvent,
    TriggerFailed,
    task,
    wait_for,
)
from evenflow.core.states import TaskState
from evenflow.errors import BadArgument, BadSetting
from evenflow.sdk.operators.sensors import BaseSensorOperator
from evenflow.testing import DagRunner
from tests.sdk.waiting_triggers import Asks, Breaks, Ends, Says

NOW = datetime(2026, 1, 1, tzinfo=UTC)  # a Thursday
S, F, K = TaskState.SUCCESS, TaskState.FAILED, TaskState.SKIPPED


@pytest.fixture(autouse=True)
def _nothing_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(seconds: float) -> None:
        raise AssertionError(f"sleep({seconds})")

    monkeypatch.setattr(time, "sleep", refuse)


class Waits(BaseOperator):
    def __init__(self, *, trigger: BaseTrigger, timeout: float | None = None, stopped: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self.trigger, self.timeout, self.stopped = trigger, timeout, stopped

    def execute(self, context: Any) -> None:
        context["ti"].xcom_push("before", "kept")
        self.defer(trigger=self.trigger, method_name="done", timeout=self.timeout)

    def done(self, context: Any, event: Any) -> Any:
        context["ti"].xcom_push("began", context["ti"].start_date)
        return event

    def on_kill(self) -> None:
        self.stopped.append(self.task_id)


class Sees(BaseTrigger):
    """Looks every seven seconds whether a task has done something."""

    done: ClassVar[set[str]] = set()

    def __init__(self, name: str) -> None:
        self.name = name

    async def run(self) -> AsyncIterator[TriggerEvent]:
        for _ in range(1_000):
            if self.name in self.done:
                break
            await asyncio.sleep(7)
        yield TriggerEvent(self.name)


def test_the_time_of_the_run_passes_and_nobody_waits() -> None:
    with DAG("d") as dag:
        Waits(task_id="hour", trigger=Says("a", after_s=3600.0))

        @task
        async def twice() -> str:
            await wait_for(TimeDeltaTrigger(timedelta(minutes=10)))
            moment = await wait_for(TimeDeltaTrigger(timedelta(minutes=10)))
            return f"{moment:%H:%M}"

        twice()
    run = DagRunner(dag, now=NOW)()
    run.raise_on_failure()
    assert run.elapsed == timedelta(hours=1)
    assert (run.result("hour"), run.result("hour", key="before"), run.result("twice")) == ("a", "kept", "00:20")
    assert run.result("hour", key="began") == NOW
    assert run.ended_at("twice") == NOW + timedelta(minutes=20)
    assert [str(m.state) for m in run.order if m.task_id == "hour"] == ["running", "deferred", "running", "success"]
    assert run.tries("twice") == 1
    assert Says.closed[-1] == "a"


def test_a_trigger_sees_what_other_tasks_do_meanwhile() -> None:
    Sees.done.clear()
    with DAG("d") as dag:
        Waits(task_id="waits", trigger=Sees("made"))

        @task
        def makes() -> None:
            Sees.done.add("made")

        TimeDeltaSensor(task_id="later", delta=timedelta(minutes=3), deferrable=True) >> makes()
    run = DagRunner(dag, now=NOW)()
    run.raise_on_failure()
    assert run.ended_at("waits") == NOW + timedelta(minutes=3, seconds=2)


def test_a_deferred_task_leaves_its_slot_to_others_and_comes_back_above_it() -> None:
    """The run's cap is released, and a resume is never refused; the limit of the task itself is kept."""
    with DAG("d", max_active_tasks=1) as dag:
        Waits(task_id="waits", trigger=Says(1, after_s=60.0), priority_weight=9)

        @task
        def busy() -> None: ...

        busy()

        @task(max_active_tis_per_dagrun=1)
        async def each(n: int) -> Any:
            return await wait_for(Says(n, after_s=30.0))

        each.expand(n=[1, 2])
    runner = DagRunner(dag, now=NOW)
    runner.stub("busy", takes=timedelta(hours=1))
    run = runner()
    run.raise_on_failure()
    assert run.started_at("busy") == NOW
    assert run.ended_at("waits") == NOW + timedelta(minutes=1)
    assert run.ended_at("each", 0) <= run.started_at("each", 1)  # type: ignore[operator]


@pytest.mark.parametrize(("chosen", "begins"), [({"task_limits": "release"}, 0), ({"task_limits": "release", "run": "hold"}, 30)])
def test_what_is_held_is_chosen_by_the_task(chosen: dict[str, str], begins: int) -> None:
    with DAG("d", max_active_tasks=1) as dag:

        @task(max_active_tis_per_dagrun=1, while_deferred=chosen)
        async def each(n: int) -> Any:
            return await wait_for(Says(n, after_s=30.0))

        each.expand(n=[1, 2])
    run = DagRunner(dag, now=NOW)()
    run.raise_on_failure()
    assert run.started_at("each", 1) == NOW + timedelta(seconds=begins)


@pytest.mark.parametrize(
    ("trigger", "timeout", "said"),
    [
        (Says(1, after_s=60.0), 5.0, "TaskDeferralTimeout: Task 't' waited 5.0 s for Says, which is its timeout."),
        (Breaks(), None, "TriggerFailed: Task 't' waited 0.0 s for Breaks, which failed: OSError: no route to host"),
        (Ends(), None, "which failed: BadDeferral: Ends.run() ended without an event"),
        (Says(object), None, "the arguments of Says, 'payload' has a value of type builtins.type"),
    ],
)
def test_a_trigger_without_an_event_fails_the_try(trigger: BaseTrigger, timeout: float | None, said: str) -> None:
    with DAG("d") as dag:
        Waits(task_id="t", trigger=trigger, timeout=timeout, retries=1, retry_delay=10)
    run = DagRunner(dag, now=NOW)()
    assert (run.states["t"], run.tries("t")) == (F, 2)
    assert said in str(run.reason("t"))


def test_fail_fast_stops_what_waits() -> None:
    stopped: list[str] = []
    Says.stopped.clear()
    with DAG("d", fail_fast=True) as dag:
        Waits(task_id="waits", trigger=Says("never", after_s=1e6), stopped=stopped)
        PythonSensor(task_id="looks", python_callable=bool, deferrable=True, while_deferred={"task_limits": "release"})

        @task
        def fails() -> None:
            raise TaskFailedForGood("no")

        fails()
    run = DagRunner(dag, now=NOW)()
    assert run.states == {"waits": F, "looks": F, "fails": F}
    assert (stopped, Says.stopped) == (["waits"], ["never"])
    assert run.elapsed == timedelta(0)


def test_a_trigger_asks_as_its_task_may() -> None:
    with DAG("d") as dag:
        Waits(task_id="t", trigger=Asks())
    assert DagRunner(dag, now=NOW)().result("t") == {"waited_s": 0.0}


def test_what_comes_from_outside_is_waited_for() -> None:
    """A thread that answers for real, while the time of the run stands still."""

    class Answer(BaseOperator):
        def execute(self, context: Any) -> None:
            self.defer(trigger=Threads(), method_name="done", timeout=1.0)

        def done(self, context: Any, event: Any) -> Any:
            return event

    with DAG("d") as dag:
        Answer(task_id="t")
    assert DagRunner(dag, now=NOW)().result("t") == "from a thread"


class Threads(BaseTrigger):
    async def run(self) -> AsyncIterator[TriggerEvent]:
        asked = threading.Event()
        asyncio.get_running_loop().call_later(0, asked.set)
        yield TriggerEvent(await asyncio.to_thread(lambda: "from a thread" if asked.wait(5) else "nothing"))


def deferrable(task_id: str, **options: Any) -> dict[str, Any]:
    return {"task_id": task_id, "deferrable": True, **options}


@pytest.mark.parametrize(
    ("sensor", "until"),
    [
        (lambda: DateTimeSensor(**deferrable("s", target_time="2026-01-01T05:00:00")), NOW + timedelta(hours=5)),
        (lambda: DateTimeSensor(**deferrable("s", target_time="2025-01-01")), NOW),
        (lambda: TimeDeltaSensor(**deferrable("s", delta=timedelta(hours=2))), NOW + timedelta(hours=2)),
        (lambda: TimeSensor(**deferrable("s", target_time=(NOW + timedelta(hours=3)).time())), NOW + timedelta(hours=3)),
        (lambda: DayOfWeekSensor(**deferrable("s", week_day="saturday")), NOW + timedelta(days=2)),
        (lambda: DayOfWeekSensor(**deferrable("s", week_day=["wednesday", 4])), NOW),
    ],
)
def test_sensors_for_times_wait_by_a_trigger(sensor: Any, until: datetime) -> None:
    with DAG("d") as dag:
        sensor()
    run = DagRunner(dag, now=NOW)()
    run.raise_on_failure()
    assert run.ended_at("s") == until
    assert len([m for m in run.order if m.state is TaskState.RUNNING]) == (1 if until == NOW else 2)
    assert run.result("s") is None


def test_a_sensor_without_a_trigger_is_deferred_from_look_to_look() -> None:
    looks: list[int] = []
    with DAG("d") as dag:

        @task.sensor(deferrable=True, poke_interval=60)
        def there() -> bool:
            looks.append(1)
            return len(looks) == 4

        there()
    run = DagRunner(dag, now=NOW)()
    assert (run.states["there"], run.elapsed, run.tries("there")) == (S, timedelta(minutes=3), 1)
    assert [str(m.state) for m in run.order] == ["running", "deferred"] * 3 + ["running", "success"]


@pytest.mark.parametrize(("options", "state"), [({}, F), ({"soft_fail": True}, K), ({"never_fail": True}, F)])
@pytest.mark.parametrize("has_trigger", [True, False])
def test_the_timeout_of_a_sensor_counts_all_that_it_waited(options: dict[str, Any], state: TaskState, has_trigger: bool) -> None:
    settings = {"timeout": 90, "retries": 3, "poke_interval": 60, **options}
    with DAG("d") as dag:
        if has_trigger:
            TimeDeltaSensor(**deferrable("s", delta=timedelta(days=1), **settings))
        else:
            PythonSensor(**deferrable("s", python_callable=lambda: False, **settings))
    run = DagRunner(dag, now=NOW)()
    assert (run.states["s"], run.tries("s"), run.elapsed) == (state, 1, timedelta(seconds=90))
    assert "was not there after 90.0 s; its timeout is 90 s" in str(run.reason("s"))


class Sensor(BaseSensorOperator):
    def __init__(self, *, waits_for: BaseTrigger, raises: Exception | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.waits_for, self.raises = waits_for, raises

    def poke(self, context: Any) -> bool:
        return False

    def trigger(self, context: Any) -> BaseTrigger:
        return self.waits_for

    def found(self, context: Any, event: Any) -> Any:
        if self.raises is not None:
            raise self.raises
        return event


@pytest.mark.parametrize(
    ("given", "options", "state", "tries"),
    [
        ({"waits_for": Says("x")}, {}, S, 1),
        ({"waits_for": Breaks()}, {}, F, 2),
        ({"waits_for": Breaks()}, {"never_fail": True}, K, 1),
        ({"waits_for": Breaks()}, {"soft_fail": True}, F, 2),
        ({"waits_for": Says(1), "raises": TaskFailedForGood("no")}, {}, F, 1),
        ({"waits_for": Says(1), "raises": TaskFailedForGood("no")}, {"soft_fail": True}, K, 1),
        ({"waits_for": Says(1), "raises": OSError("no")}, {"never_fail": True}, K, 1),
        ({"waits_for": Says(1, after_s=10.0), "raises": OSError("no")}, {"silent_fail": True, "timeout": 25}, F, 1),
    ],
)
def test_a_failure_while_deferred_means_what_it_means_for_a_look(
    given: dict[str, Any], options: dict[str, Any], state: TaskState, tries: int
) -> None:
    with DAG("d") as dag:
        Sensor(task_id="s", deferrable=True, retries=1, retry_delay=1, **given, **options)
    run = DagRunner(dag, now=NOW)()
    assert (run.states["s"], run.tries("s")) == (state, tries)
    if state is S:
        assert run.result("s") == "x"
    if "silent_fail" in options:
        assert run.elapsed == timedelta(seconds=25)


def test_a_sensor_that_defers_by_itself_is_judged_the_same() -> None:
    class Own(Sensor):
        def execute(self, context: Any) -> Any:
            self.defer(trigger=self.waits_for, method_name="done", timeout=5)

        def done(self, context: Any, event: Any) -> Any:
            raise TaskFailedForGood("no")

    with DAG("d") as dag:
        Own(task_id="late", waits_for=Says(1, after_s=60.0))
        Own(task_id="skips", waits_for=Says(1, after_s=60.0), soft_fail=True)
        Own(task_id="judged", waits_for=Says(1), soft_fail=True)
    run = DagRunner(dag, now=NOW)()
    assert run.states == {"late": F, "skips": K, "judged": K}
    assert str(run.reason("late")).startswith("SensorTimeout: Task 'late' waited 5.0 s")


def test_deferrable_is_a_flag() -> None:
    with DAG("d"), pytest.raises(BadSetting, match="deferrable must be True or False, not 'yes'"):
        DateTimeSensor(task_id="s", target_time="2026-01-01", deferrable="yes")


def test_dag_test_waits_for_real(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with DAG("d") as dag:
        Waits(task_id="a", trigger=Says("a", after_s=0.05))
        Waits(task_id="b", trigger=Says("b", after_s=0.05))
    began = time.monotonic()
    run = dag.test()
    took = time.monotonic() - began
    assert (run.result("a"), run.result("b")) == ("a", "b")
    assert took >= 0.05
    assert "a: deferred, waits for tests.sdk.waiting_triggers.Says" in capsys.readouterr().out


def test_events_can_have_stand_ins() -> None:
    with DAG("d") as dag:

        @task
        async def each(n: int) -> Any:
            first = await wait_for(Says("real", after_s=1e6))
            try:
                second = await wait_for(Says("real", after_s=1e6))
            except TriggerFailed as error:
                second = str(error)
            return [n, first, second, await wait_for(Says("real"))]

        each.expand(n=[1, 2])
    runner = DagRunner(dag, now=NOW)
    runner.stub_event("each", payload=(1, 2), after=timedelta(minutes=1))
    runner.stub_event("each", raises=OSError("down"))
    runner.stub_event("each", 1, payload="mine")
    for _ in range(2):
        run = runner()
        run.raise_on_failure()
        failed = "Task 'each' waited 0.0 s for Says, which failed: OSError: down"
        assert run.result("each") == [[1, (1, 2), failed, "real"], [2, "mine", failed, "real"]]
        assert run.elapsed == timedelta(minutes=1)
    with pytest.raises(BadArgument, match="has no task 'eech' to stub"):
        runner.stub_event("eech")
    with pytest.raises(BadArgument, match="comes after some time or none"):
        runner.stub_event("each", after=timedelta(-1))


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["once", "wait", "late", "broken"])), max_size=6), st.integers(0, 3))
@settings(max_examples=20, deadline=None)
def test_a_function_that_begins_again_ends_as_if_it_had_waited(steps: list[tuple[int, str]], tries_before: int) -> None:
    """Whatever it waits for and keeps, and however often it is tried: what follows from an event follows each time."""
    begun: Counter[int] = Counter()

    async def follow(ti: Any) -> list[Any]:
        begun[ti.try_number] += 1
        seen: list[Any] = []
        for position, (number, kind) in enumerate(steps):
            match kind:
                case "once":
                    seen.append(ti.once(f"step {position}", lambda number=number: [number, len(begun)]))
                case "wait" if number == len(seen) % 4:  # what it waits for depends on what it has seen
                    seen.append(await wait_for(TimeDeltaTrigger(timedelta(minutes=number))) - NOW >= timedelta(0))
                case "wait":
                    seen.append(await wait_for(Says([number, *seen[-1:]], after_s=float(number))))
                case "late":
                    with suppress(TaskDeferralTimeout):
                        await wait_for(Says(number, after_s=10.0), timeout=number)
                        seen.append("never")
                case _:
                    with suppress(TriggerFailed):
                        await wait_for(Breaks())
                        seen.append("never")
        if ti.try_number <= tries_before:
            raise OSError("again")
        return seen

    with DAG("d") as dag:
        task(task_id="t", retries=3, retry_delay=60)(follow)()
    run = DagRunner(dag, now=NOW)()
    run.raise_on_failure()
    waits = sum(kind != "once" for _, kind in steps)
    expected: list[Any] = []
    for number, kind in steps:
        if kind == "once":
            expected.append([number, 1])
        elif kind == "wait" and number == len(expected) % 4:
            expected.append(True)
        elif kind == "wait":
            expected.append([number, *expected[-1:]])
    assert run.result("t") == expected
    assert begun == dict.fromkeys(range(1, tries_before + 2), waits + 1)
    assert run.elapsed >= timedelta(minutes=tries_before)
