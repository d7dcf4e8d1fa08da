"""``dag.test()``: decides as the scheduler does, in one process."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from evenflow import DAG, EmptyOperator, Param, TaskFailedForGood, TaskSkipped, TriggerRule, task
from evenflow.core.states import RunState, TaskState
from evenflow.errors import BadArgument, DagTestFailed, ParamError

S, F, K, U = TaskState.SUCCESS, TaskState.FAILED, TaskState.SKIPPED, TaskState.UPSTREAM_FAILED


@task
def succeed() -> int:
    return 1


@task
def fail() -> None:
    raise ValueError("no")


@task
def skip() -> None:
    raise TaskSkipped


@pytest.mark.parametrize(
    ("rule", "with_success", "with_failure", "with_skip"),
    [
        (TriggerRule.ALL_SUCCESS, S, U, K),
        (TriggerRule.ALL_FAILED, K, K, K),
        (TriggerRule.ALL_DONE, S, S, S),
        (TriggerRule.ONE_SUCCESS, S, S, S),
        (TriggerRule.ONE_FAILED, K, S, K),
        (TriggerRule.NONE_FAILED, S, U, S),
        (TriggerRule.NONE_SKIPPED, S, S, K),
        (TriggerRule.ALWAYS, S, S, S),
    ],
)
def test_trigger_rules(rule: TriggerRule, with_success: TaskState, with_failure: TaskState, with_skip: TaskState) -> None:
    for other, expected in ((succeed, with_success), (fail, with_failure), (skip, with_skip)):
        with DAG("d") as dag:
            [succeed(), other.override(task_id="other")()] >> EmptyOperator(task_id="end", trigger_rule=rule)
        assert dag.test(print_logs=False).states["end"] is expected


def test_the_leaves_decide_the_run(dag: DAG) -> None:
    fail() >> EmptyOperator(task_id="end", trigger_rule="all_done")
    run = dag.test(print_logs=False)
    assert (run.state, run.states) == (RunState.SUCCESS, {"fail": F, "end": S})
    run.raise_on_failure()


def test_a_failure_is_raised_with_its_reasons(dag: DAG) -> None:
    fail() >> EmptyOperator(task_id="end")
    run = dag.test(run_id="mine", print_logs=False)
    assert (run.state, run.states) == (RunState.FAILED, {"fail": F, "end": U})
    with pytest.raises(DagTestFailed, match=r"The run 'mine' of DAG 'd' failed. fail: ValueError: no"):
        run.raise_on_failure()


def test_retries_follow_at_once(dag: DAG) -> None:
    tries: list[int] = []

    @task(retries=2, retry_delay=3600)
    def flaky(ti: Any) -> int:
        tries.append(ti.try_number)
        if ti.try_number < 3:
            raise ValueError("not yet")
        return ti.max_tries

    flaky()
    run = dag.test(print_logs=False)
    assert (tries, run.result("flaky"), run.tasks[0].tries) == ([1, 2, 3], 2, 3)  # retries, as in Airflow


def test_or_after_their_delay(dag: DAG, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    fail.override(retries=3, retry_delay=10, retry_exponential_backoff=2)()
    dag.test(print_logs=False, wait_for_retries=True)
    assert slept == [10.0, 20.0, 40.0]


def test_a_sensor_that_gives_its_slot_back_times_out(dag: DAG, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    task.sensor(task_id="wait", mode="reschedule", poke_interval=10, timeout=25)(lambda: False)()
    run = dag.test(print_logs=False)
    assert (run.states["wait"], run.tasks[0].tries, slept[:2]) == (F, 1, [10.0, 10.0])
    assert sum(slept) == pytest.approx(25, abs=0.5)


def test_what_failed_for_good_is_not_tried_again(dag: DAG) -> None:
    @task(retries=5)
    def give_up() -> None:
        raise TaskFailedForGood("never")

    give_up()
    assert dag.test(print_logs=False).tasks[0].tries == 1


def test_a_retry_begins_without_the_xcoms_of_the_try_before(dag: DAG) -> None:
    @task(retries=1)
    def push(ti: Any) -> Any:
        ti.xcom_push(f"try_{ti.try_number}", 1)
        if ti.try_number == 1:
            raise ValueError
        return [ti.xcom_pull(key="try_1"), ti.xcom_pull(key="try_2")]

    push()
    assert dag.test(print_logs=False).result("push") == [None, 1]


def test_params_are_checked_and_the_date_is_given() -> None:
    with DAG("d", params={"n": Param(1, minimum=1), "m": 2}) as dag:
        task(task_id="t")(lambda params, ds: [params.n, params.m, ds])()
    run = dag.test(params={"n": 5}, logical_date=datetime(2026, 1, 2, tzinfo=UTC), print_logs=False)
    assert run.result("t") == [5, 2, "2026-01-02"]
    with pytest.raises(ParamError, match="'n' must be at least 1, not 0"):
        dag.test(params={"n": 0})
    with pytest.raises(BadArgument, match="must have a time zone"):
        dag.test(logical_date=datetime(2026, 1, 2))


def test_results_cross_as_in_production(dag: DAG) -> None:
    """A task gets a copy, so changing it changes nothing for others."""

    @task
    def make() -> dict[str, Any]:
        return {"when": datetime(2026, 1, 1, tzinfo=UTC), "pair": (1, 2)}

    @task
    def spoil(value: dict[str, Any]) -> None:
        value.clear()

    @task
    def use(value: dict[str, Any]) -> Any:
        return value["pair"]

    made = make()
    spoil(made) >> use(made)
    run = dag.test(print_logs=False)
    assert run.result("use") == (1, 2)
    assert run.result("spoil") is None


def test_it_says_what_happens(dag: DAG, capsys: pytest.CaptureFixture[str]) -> None:
    task(task_id="t")(lambda x, ti: ti.progress(f"x={x}", x, 2)).expand(x=[1, 2])
    fail.override(retries=1)()
    dag.test()
    out = capsys.readouterr().out.splitlines()
    assert out == [
        "x=1: 1 of 2",
        "t[0]: success",
        "x=2: 2 of 2",
        "t[1]: success",
        "fail: try 1 of 2 failed (ValueError: no); trying again",
        "fail: failed (ValueError: no)",
        "DAG 'd': failed; 2 success, 1 failed",
    ]


def test_or_says_nothing(dag: DAG, capfd: pytest.CaptureFixture[str]) -> None:
    fail()
    task.bash(task_id="b")(lambda: "echo out")()
    dag.test(print_logs=False)
    assert capfd.readouterr() == ("", "")


def test_ctrl_c_ends_it(dag: DAG) -> None:
    @task
    def interrupted() -> None:
        raise KeyboardInterrupt

    interrupted()
    with pytest.raises(KeyboardInterrupt):
        dag.test(print_logs=False)


def test_an_empty_dag_succeeds(dag: DAG) -> None:
    assert dag.test(print_logs=False).state is RunState.SUCCESS
