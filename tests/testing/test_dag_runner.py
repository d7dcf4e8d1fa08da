"""``DagRunner``: what authors write in their tests, and the time in which a run passes."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evenflow import (
    DAG,
    BaseHook,
    DateTimeSensor,
    EmptyOperator,
    Param,
    TaskFailedForGood,
    TaskRescheduled,
    TaskSkipped,
    TriggerRule,
    Variable,
    task,
    task_group,
)
from evenflow.core.model import UNMAPPED, DagSpec
from evenflow.core.states import RunState, TaskState
from evenflow.errors import BadArgument, BadBranch, DagTestFailed, ParamError
from evenflow.testing import DagRunner
from tests.core.naive_run import NaiveRun
from tests.core.random_runs import OUTCOMES, random_dag, random_skips
from tests.sdk.test_control_flow import built

NOW = datetime(2026, 1, 1, tzinfo=UTC)
S, F, K, U = TaskState.SUCCESS, TaskState.FAILED, TaskState.SKIPPED, TaskState.UPSTREAM_FAILED


@pytest.fixture(autouse=True)
def _nothing_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(seconds: float) -> None:
        raise AssertionError(f"sleep({seconds})")

    monkeypatch.setattr(time, "sleep", refuse)


@task
def real(value: Any = None) -> Any:
    return value


@task
def outside() -> None:
    raise AssertionError("this is not to run in a test")


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def test_a_pipeline_with_stubs() -> None:
    with DAG("etl", params={"table": "orders"}) as dag:

        @task(retries=2, retry_delay=300)
        def load(row: int) -> int:
            return row * 10

        @task
        def train(rows: list[int]) -> int:
            return sum(rows)

        train(load.expand(row=outside.override(task_id="extract")()))
    run = DagRunner(dag, now=NOW)
    run.stub("extract", returns=[1, 2, 3])
    run.stub("load", 1, raises=ConnectionError("down"), times=1)
    run.stub("train", returns="model", takes=minutes(40))
    outcome = run(params={"table": "people"})
    outcome.raise_on_failure()
    assert outcome.states == {"extract": S, "load": [S, S, S], "train": S}
    assert outcome.result("load") == [10, 20, 30]
    assert outcome.result("train") == "model"
    assert (outcome.tries("load", 0), outcome.tries("load", 1), outcome.tries("load")) == (1, 2, 4)
    assert outcome.elapsed == minutes(45)
    assert (outcome.started_at("train"), outcome.ended_at("train")) == (NOW + minutes(5), NOW + minutes(45))
    assert [str(moment) for moment in outcome.order if moment.task_id != "load"] == [
        "2026-01-01 00:00:00 extract: running",
        "2026-01-01 00:00:00 extract: success",
        "2026-01-01 00:05:00 train: running",
        "2026-01-01 00:45:00 train: success",
    ]
    assert run().elapsed == minutes(45)  # each run begins with all stubs anew


def test_tries_run_side_by_side_by_priority_and_within_limits(dag: DAG) -> None:
    for name, weight in (("low", 1), ("high", 9), ("middle", 5)):
        EmptyOperator(task_id=name, priority_weight=weight)
    run = DagRunner(dag, now=NOW)
    for name in ("low", "high", "middle"):
        run.stub(name, takes=minutes(10))
    assert run().elapsed == minutes(10)


def test_by_priority_when_there_are_fewer_slots() -> None:
    with DAG("d", max_active_tasks=1) as dag:
        for name, weight in (("low", 1), ("high", 9), ("middle", 5)):
            EmptyOperator(task_id=name, priority_weight=weight)
    run = DagRunner(dag, now=NOW)
    for name in ("low", "high", "middle"):
        run.stub(name, takes=minutes(10))
    outcome = run()
    assert outcome.elapsed == minutes(30)
    assert [m.task_id for m in outcome.order if m.state is TaskState.RUNNING] == ["high", "middle", "low"]


def test_instances_of_a_task_within_its_own_limit(dag: DAG) -> None:
    real.override(max_active_tis_per_dagrun=2).expand(value=[1, 2, 3, 4, 5])
    run = DagRunner(dag, now=NOW)
    run.stub("real", takes=minutes(1))
    assert run().elapsed == minutes(3)


def test_instances_of_a_group_do_not_wait_for_each_other(dag: DAG) -> None:
    @task_group
    def each(value: int) -> None:
        real.override(task_id="second")(real.override(task_id="first")(value))

    each.expand(value=[1, 2])
    run = DagRunner(dag, now=NOW)
    run.stub("each.first", 0, takes=minutes(10))
    run.stub("each.second", takes=minutes(1))
    outcome = run()
    assert outcome.ended_at("each.second", 1) == NOW + minutes(1)
    assert outcome.elapsed == minutes(11)


def test_what_follows_a_mapped_task_index_by_index(dag: DAG) -> None:
    real.override(task_id="after").expand(value=real.override(task_id="first").expand(value=[1, 2]))
    run = DagRunner(dag, now=NOW)
    run.stub("first", 0, returns=7, takes=minutes(10))
    outcome = run()
    assert outcome.result("after") == [7, 2]
    assert outcome.started_at("after", 1) == NOW


def test_a_task_that_needs_one_upstream_starts_before_the_others_have_ended(dag: DAG) -> None:
    [real.override(task_id="slow")(), real.override(task_id="quick")()] >> EmptyOperator(
        task_id="first_wins", trigger_rule=TriggerRule.ONE_SUCCESS
    )
    run = DagRunner(dag, now=NOW)
    run.stub("slow", takes=minutes(10))
    assert run().ended_at("first_wins") == NOW


def test_fail_fast_ends_what_runs() -> None:
    with DAG("d", fail_fast=True) as dag:
        real.override(task_id="slow")() >> EmptyOperator(task_id="after")
        real.override(task_id="fails")()
    run = DagRunner(dag, now=NOW)
    run.stub("slow", takes=minutes(10))
    run.stub("fails", raises=ValueError, takes=minutes(1))
    outcome = run()
    assert outcome.states == {"slow": F, "after": K, "fails": F}
    assert outcome.elapsed == minutes(1)


@pytest.mark.parametrize("seed", range(60))
def test_what_runs_side_by_side_is_decided_as_the_model_decides(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenflow.sdk.spec.check_flow", lambda dag, upstream: None)
    rng = random.Random(seed)
    spec, lengths = random_dag(rng)
    keys = [(i, m) for i in range(len(spec.tasks)) for m in (UNMAPPED, *range(lengths.get(i, 0)))]
    script = {key: [(rng.choice(OUTCOMES), random_skips(rng, spec, key[0])) for _ in range(2)] for key in keys}
    dag = built(spec, script)
    run = DagRunner(dag, now=NOW)
    raised = {"failed": ValueError, "skipped": TaskSkipped, "failed_for_good": TaskFailedForGood}
    for i, map_index in keys:
        for number, (outcome, skip) in enumerate(script[i, map_index]):
            if map_index == UNMAPPED and i not in lengths and not spec.tasks[i].empty and not (outcome == "success" and skip):
                script[i, map_index][number] = outcome, []
                run.stub(f"t{i}", raises=raised.get(outcome), times=1, takes=minutes(rng.randint(0, 5)))
            else:
                break
    ran = run()
    naive = NaiveRun(DagSpec(dag_id="d", tasks=spec.tasks), lengths)
    for end in ran.tasks:
        index = int(end.task_id[1:])
        for ended, skip in script[index, end.map_index][: end.tries]:
            naive.end(index, end.map_index, ended, skip)
    assert {(int(end.task_id[1:]), end.map_index): end.state for end in ran.tasks} == naive.states
    assert ran.state == naive.state
    assert [m.at for m in ran.order] == sorted(m.at for m in ran.order)


def test_a_branch_chooses(dag: DAG) -> None:
    @task.branch
    def choose() -> str:
        raise AssertionError

    choose() >> [EmptyOperator(task_id="a"), EmptyOperator(task_id="b")]
    run = DagRunner(dag, now=NOW)
    run.stub("choose", chooses="b")
    assert run().states == {"choose": S, "a": K, "b": S}
    assert run().result("choose") == ["b"]
    run = DagRunner(dag, now=NOW)
    with pytest.raises(BadBranch, match="chose 'c', and there is no such task"):
        run.stub("choose", chooses=["c"])
    with pytest.raises(BadArgument, match=r"is a branch\. Say what it chooses"):
        run.stub("choose", returns="a")
    with pytest.raises(BadArgument, match="is no branch"):
        run.stub("a", chooses="b")


def test_a_short_circuit_cuts_off(dag: DAG) -> None:
    task.short_circuit(task_id="go_on")(lambda: True)() >> EmptyOperator(task_id="a") >> EmptyOperator(task_id="b")
    run = DagRunner(dag, now=NOW)
    run.stub("go_on", returns=False)
    assert run().states == {"go_on": S, "a": K, "b": K}


@pytest.mark.parametrize(
    ("error", "state", "tries"), [(TaskSkipped("x"), K, 1), (TaskFailedForGood, F, 1), (ValueError("no"), F, 3)]
)
def test_what_a_stub_raises_means_what_it_means(dag: DAG, error: Any, state: TaskState, tries: int) -> None:
    real.override(task_id="t", retries=2)()
    run = DagRunner(dag, now=NOW)
    run.stub("t", raises=error)
    outcome = run()
    assert (outcome.states, outcome.tries("t")) == ({"t": state}, tries)
    if state is F:
        with pytest.raises(DagTestFailed, match="t: "):
            outcome.raise_on_failure()


def test_stubs_follow_each_other_and_then_the_task_runs(dag: DAG) -> None:
    real.override(task_id="t", retries=5, retry_delay=60)("at last")
    run = DagRunner(dag, now=NOW)
    run.stub("t", raises=ValueError("one"), times=1)
    run.stub("t", raises=KeyError("two"), times=2)
    outcome = run()
    assert (outcome.tries("t"), outcome.result("t"), outcome.elapsed) == (4, "at last", minutes(3))
    run.stub("t", returns=1)
    with pytest.raises(BadArgument, match="already has a stub for all its tries"):
        run.stub("t", returns=2)


def test_a_stub_that_takes_too_long_is_ended(dag: DAG) -> None:
    real.override(task_id="t", execution_timeout=600, retries=1, retry_delay=60)()
    run = DagRunner(dag, now=NOW)
    run.stub("t", takes=minutes(11))
    outcome = run()
    assert (outcome.states["t"], outcome.elapsed) == (F, minutes(21))
    assert outcome.reason("t") == "execution_timeout of 600 s exceeded"


@pytest.mark.parametrize("mode", ["poke", "reschedule"])
def test_sensors_move_the_clock(mode: str) -> None:
    with DAG("d", max_active_tasks=1) as dag:
        pokes: list[int] = []

        @task.sensor(mode=mode, poke_interval=60, timeout=600, priority_weight=5)
        def wait() -> bool:
            pokes.append(1)
            return len(pokes) == 4

        wait()
        real.override(task_id="beside")()
    run = DagRunner(dag, now=NOW)
    outcome = run()
    assert outcome.ended_at("wait") == NOW + minutes(3)
    assert outcome.tries("wait") == 1
    assert outcome.ended_at("beside") == (NOW + minutes(3) if mode == "poke" else NOW)  # its slot is kept, or is free


@pytest.mark.parametrize("mode", ["poke", "reschedule"])
def test_and_time_out_by_it(dag: DAG, mode: str) -> None:
    task.sensor(task_id="wait", mode=mode, poke_interval=60, timeout=600)(lambda: False)()
    outcome = DagRunner(dag, now=NOW)()
    assert (outcome.states["wait"], outcome.elapsed) == (F, minutes(10))
    assert "timeout is 600 s" in str(outcome.reason("wait"))


def test_sensors_for_a_time_go_by_it(dag: DAG) -> None:
    DateTimeSensor(task_id="wait", target_time=NOW + minutes(90), poke_interval=minutes(30))
    assert DagRunner(dag, now=NOW)().elapsed == minutes(90)


def test_a_task_that_asks_to_be_started_again(dag: DAG) -> None:
    seen: list[int] = []

    @task
    def later() -> None:
        seen.append(1)
        if len(seen) < 3:
            raise TaskRescheduled(timedelta(hours=1))

    later()
    assert DagRunner(dag, now=NOW)().elapsed == timedelta(hours=2)


def test_connections_and_variables(dag: DAG, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENFLOW_CONN_DB", "postgres://production")

    @task
    def look() -> list[Any]:
        return [BaseHook.get_connection("db").host, Variable.get("key")]

    look()
    run = DagRunner(dag, now=NOW)
    run.stub_connection("db", "postgres://test")
    run.stub_variable("key", "value")
    assert run().result("look") == ["test", "value"]
    assert BaseHook.get_connection("db").host == "production"
    assert Variable.get("key", None) is None


def test_the_run_is_at_its_time(dag: DAG) -> None:
    task(task_id="t")(lambda ts, dag_run, ds: [ts, dag_run.run_after, ds])()
    run = DagRunner(dag, now=NOW)
    assert run().result("t") == [NOW.isoformat(), NOW, "2026-01-01"]
    assert run(logical_date=NOW - timedelta(days=1)).result("t")[2] == "2025-12-31"


def test_callbacks_are_noted_and_not_called() -> None:
    def page(context: Any) -> None:
        raise AssertionError("a test wakes nobody")

    with DAG("d", on_failure_callback=page) as dag:
        real.override(task_id="t", retries=1, on_failure_callback=page, on_retry_callback=[page, page])()
    run = DagRunner(dag, now=NOW)
    run.stub("t", raises=ValueError("no"))
    called = run().callbacks
    assert [(each.event, each.task_id) for each in called] == [
        ("on_retry_callback", "t"),
        ("on_retry_callback", "t"),
        ("on_failure_callback", "t"),
        ("on_failure_callback", None),
    ]
    assert {each.function for each in called} == {page}
    assert called[0].reason == "ValueError: no"


def test_mistakes_are_said(dag: DAG) -> None:
    real.override(task_id="extract").expand(value=[1])
    EmptyOperator(task_id="end")
    run = DagRunner(dag)
    with pytest.raises(BadArgument, match=r"has no task 'extrct' to stub. Did you mean 'extract'\?"):
        run.stub("extrct")
    with pytest.raises(BadArgument, match=r"no instance 0 of task 'end' to stub. It is not mapped"):
        run.stub("end", 0)
    with pytest.raises(BadArgument, match="give one of the three"):
        run.stub("end", returns=1, raises=ValueError)
    with pytest.raises(BadArgument, match="not 0 times"):
        run.stub("end", times=0)
    with pytest.raises(BadArgument, match="must have a time zone"):
        DagRunner(dag, now=datetime(2026, 1, 1))
    with pytest.raises(BadArgument, match="no task 'x'"):
        run().tries("x")
    with pytest.raises(BadArgument, match="no instance 5"):
        run().tries("extract", 5)
    with pytest.raises(ParamError, match="'n' must be"):
        DagRunner(DAG("with_params", params={"n": Param(1, type="integer")}))(params={"n": "x"})


def test_ten_thousand_instances_take_no_time_worth_speaking_of(dag: DAG) -> None:
    real.override(task_id="t", max_active_tis_per_dagrun=100).expand(value=list(range(10_000))) >> EmptyOperator(task_id="end")
    run = DagRunner(dag, now=NOW)
    run.stub("t", takes=minutes(1))
    outcome = run()
    assert outcome.state is RunState.SUCCESS
    assert outcome.elapsed == minutes(10_000 / 16)  # max_active_tasks of a DAG is 16
