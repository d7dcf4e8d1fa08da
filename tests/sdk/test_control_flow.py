"""Branches, conditions, setups and teardowns, fail_fast and retry policies, as authors write and ``dag.test()`` runs them."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evenflow import (
    DAG,
    BaseBranchOperator,
    BranchPythonOperator,
    EmptyOperator,
    ExceptionRetryPolicy,
    LatestOnlyOperator,
    PythonOperator,
    RetryAction,
    RetryRule,
    ShortCircuitOperator,
    TaskFailedForGood,
    TaskGroup,
    TaskSkipped,
    TriggerRule,
    setup,
    task,
    task_group,
    teardown,
)
from evenflow.core import model
from evenflow.core.model import UNMAPPED
from evenflow.core.states import TaskState
from evenflow.errors import BadArgument, BadSetting
from evenflow.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from evenflow.sdk.local.outcome import RunOutcome
from tests.core.naive_run import NaiveRun
from tests.core.random_runs import OUTCOMES, random_dag, random_skips


def ran(dag: DAG, **options: Any) -> RunOutcome:
    return dag.test(print_logs=False, **options)


def states(dag: DAG) -> dict[str, Any]:
    return {name: state.value if isinstance(state, TaskState) else state for name, state in ran(dag).states.items()}


def ok(task_id: str, **options: Any) -> EmptyOperator:
    return EmptyOperator(task_id=task_id, **options)


def edges(dag: DAG) -> set[tuple[str, str]]:
    spec = dag.to_spec()
    return {(spec.tasks[u].task_id, t.task_id) for t in spec.tasks for u in t.upstream}


# -- branches


def test_a_branch_skips_what_it_did_not_choose() -> None:
    with DAG("d") as dag:
        choose = BranchPythonOperator(task_id="choose", python_callable=lambda: "a")
        choose >> [ok("a"), ok("b")]
        dag.get_task("b") >> ok("after_b")
    assert states(dag) == {"choose": "success", "a": "success", "b": "skipped", "after_b": "skipped"}
    assert ran(dag).result("choose") == ["a"]


def test_a_join_that_follows_the_chosen_branch_is_not_skipped() -> None:
    with DAG("d") as dag:
        choose = BranchPythonOperator(task_id="choose", python_callable=lambda: "a")
        join = ok("join", trigger_rule="none_failed_min_one_success")
        choose >> ok("a") >> join
        choose >> join
    assert states(dag) == {"choose": "success", "join": "success", "a": "success"}


@pytest.mark.parametrize("nothing", [None, []])
def test_a_branch_may_choose_nothing(nothing: Any) -> None:
    with DAG("d") as dag:
        BranchPythonOperator(task_id="choose", python_callable=lambda: nothing) >> [ok("a"), ok("b")]
    assert states(dag) == {"choose": "success", "a": "skipped", "b": "skipped"}


def test_a_branch_may_choose_several_and_groups() -> None:
    with DAG("d") as dag:

        @task.branch
        def choose() -> list[str]:
            return ["load", "b"]

        with TaskGroup("load") as load:
            ok("one") >> ok("two")
        choose() >> [load, ok("b"), ok("c")]
    assert states(dag) == {"choose": "success", "load.one": "success", "load.two": "success", "b": "success", "c": "skipped"}


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ("later", "chose 'later', which is not directly downstream of it. Connect it, 'choose' >> 'later', or return one of: 'a'."),
        ("typo", "chose 'typo', and there is no such task. Return one of: 'a'."),
    ],
)
def test_what_is_not_directly_downstream_is_an_error(chosen: str, message: str) -> None:
    with DAG("d") as dag:
        BranchPythonOperator(task_id="choose", python_callable=lambda: chosen) >> ok("a") >> ok("later")
    outcome = ran(dag)
    assert outcome.states["choose"] is TaskState.FAILED
    assert message in str(outcome.tasks[0].reason)


def test_an_operator_of_ones_own() -> None:
    class ByDay(BaseBranchOperator):
        def choose_branch(self, context: Any) -> str:
            return "even"

    with DAG("d") as dag:
        ByDay(task_id="by_day") >> [ok("even"), ok("odd")]
    assert states(dag) == {"by_day": "success", "even": "success", "odd": "skipped"}


def test_a_short_circuit_skips_everything_but_teardowns() -> None:
    with DAG("d") as dag:

        @task.short_circuit
        def go_on() -> bool:
            return False

        made = ok("make").as_setup()
        clean = ok("clean").as_teardown(setups=made)
        go_on() >> ok("work") >> ok("report", trigger_rule="all_done") >> clean
    assert states(dag) == {"go_on": "success", "make": "success", "work": "skipped", "report": "skipped", "clean": "success"}


def test_a_short_circuit_may_leave_the_rest_to_trigger_rules() -> None:
    with DAG("d") as dag:
        stop = ShortCircuitOperator(task_id="stop", python_callable=lambda: 0, ignore_downstream_trigger_rules=False)
        stop >> ok("work") >> ok("report", trigger_rule="all_done")
    assert states(dag) == {"stop": "success", "work": "skipped", "report": "success"}


def test_a_short_circuit_that_is_true_skips_nothing() -> None:
    with DAG("d") as dag:
        ShortCircuitOperator(task_id="go", python_callable=lambda: [1]) >> ok("work")
    assert states(dag) == {"go": "success", "work": "success"}


def test_latest_only_lets_runs_that_people_trigger_go_on() -> None:
    with DAG("d", schedule="@daily", start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        LatestOnlyOperator(task_id="latest") >> ok("work")
    assert states(dag) == {"latest": "success", "work": "success"}


# -- conditions


def test_run_if_and_skip_if() -> None:
    with DAG("d") as dag:

        @task.run_if(lambda context: context["run_id"] == "other", skip_message="not today")
        @task
        def never() -> None:
            raise AssertionError

        @task.skip_if(lambda context: False)
        @task.run_if(lambda context: True)
        @task
        def always(x: int) -> int:
            return x

        never()
        always.expand(x=[1, 2])
    outcome = ran(dag)
    assert outcome.states == {"never": "skipped", "always": ["success", "success"]}
    assert outcome.tasks[0].reason == "not today"


def test_a_condition_stands_above_task() -> None:
    with pytest.raises(BadArgument, match="stands above @task"):
        task.run_if(lambda context: True)(lambda: 1)


# -- setups and teardowns


def test_a_teardown_runs_although_the_work_failed() -> None:
    with DAG("d") as dag:

        @setup
        def make() -> str:
            return "cluster"

        @task
        def work(cluster: str) -> None:
            raise ValueError("broken")

        @teardown
        def clean(cluster: str) -> None:
            assert cluster == "cluster"

        cluster = make()
        work(cluster) >> clean(cluster)
    outcome = ran(dag)
    assert outcome.states == {"make": "success", "work": "failed", "clean": "success"}
    assert outcome.state == "failed"


def test_a_teardown_of_a_failed_setup_does_not_run() -> None:
    with DAG("d") as dag:

        @setup
        def make() -> None:
            raise ValueError("broken")

        made = make()
        with ok("clean").as_teardown(setups=made):
            ok("work")
    assert states(dag) == {"make": "failed", "clean": "upstream_failed", "work": "upstream_failed"}


@pytest.mark.parametrize(("decisive", "state"), [(False, "success"), (True, "failed")])
def test_a_failed_teardown_fails_the_run_only_on_request(decisive: bool, state: str) -> None:
    with DAG("d") as dag:

        @teardown(on_failure_fail_dagrun=decisive)
        def clean() -> None:
            raise ValueError("broken")

        ok("work") >> clean()
    assert ran(dag).state == state


def test_a_scope_makes_the_edges() -> None:
    with DAG("d") as dag, ok("clean").as_teardown(setups=ok("make")):
        ok("a") >> ok("b")
        ok("c")
    assert edges(dag) == {("make", "clean"), ("make", "a"), ("a", "b"), ("b", "clean"), ("make", "c"), ("c", "clean")}


def test_scopes_nest() -> None:
    with DAG("d") as dag:
        outer = ok("outer_clean").as_teardown(setups=ok("outer"))
        inner = ok("inner_clean").as_teardown(setups=ok("inner"))
        with outer, inner:
            ok("work")
    assert edges(dag) >= {("outer", "inner"), ("inner", "work"), ("work", "inner_clean"), ("inner_clean", "outer_clean")}


def test_tasks_from_outside_are_added_to_a_scope() -> None:
    with DAG("d") as dag:
        work = ok("work")
        with ok("clean").as_teardown(setups=[ok("one"), ok("two")]) as scope:
            scope.add_task(work)
    assert edges(dag) == {("one", "clean"), ("two", "clean"), ("one", "work"), ("two", "work"), ("work", "clean")}


def test_arrows_from_groups_leave_teardowns_out() -> None:
    with DAG("d") as dag:
        with TaskGroup("g") as group, ok("clean").as_teardown(setups=ok("make")):
            ok("work")
        group >> ok("next")
    assert edges(dag) >= {("g.work", "next")}
    assert not edges(dag) & {("g.clean", "next"), ("g.make", "next")}


def test_a_scope_needs_a_setup_or_a_teardown() -> None:
    with DAG("d"), pytest.raises(BadArgument, match="is no setup and no teardown"), ok("work"):
        pass


def test_a_group_is_no_setup() -> None:
    @task_group
    def group() -> None: ...

    with pytest.raises(BadArgument, match="cannot mark the task group group"):
        setup(group)


def test_a_teardown_has_its_own_trigger_rule() -> None:
    with DAG("d"), pytest.raises(BadArgument, match="always has the trigger rule"):
        ok("clean", trigger_rule="one_failed").as_teardown()


def test_what_follows_a_setup_needs_it() -> None:
    with DAG("d") as dag:
        ok("make").as_setup() >> ok("work", trigger_rule="all_done")
    with pytest.raises(BadSetting, match="follows a setup"):
        dag.to_spec()


# -- fail_fast and retries


def test_fail_fast_ends_all_others_but_teardowns() -> None:
    def fail() -> None:
        raise ValueError("broken")

    with DAG("d", fail_fast=True) as dag:
        made = ok("make").as_setup()
        failing = PythonOperator(task_id="failing", python_callable=fail)
        made >> failing >> ok("after")
        failing >> ok("clean").as_teardown(setups=made)
        ok("start") >> ok("other") >> ok("more")
    found = states(dag)
    assert (found["failing"], found["after"], found["clean"]) == ("failed", "upstream_failed", "success")
    assert ran(dag).state == "failed"


def test_fail_fast_wants_all_success() -> None:
    with DAG("d", fail_fast=True) as dag:
        ok("a") >> ok("b", trigger_rule=TriggerRule.ALL_DONE)
    with pytest.raises(BadSetting, match=r"task 'b': with fail_fast=True .* must be 'all_success', not 'all_done'"):
        dag.to_spec()


@pytest.mark.parametrize(("error", "tries"), [(ValueError, 1), (ConnectionResetError, 2), (KeyError, 3)])
def test_a_retry_policy_looks_at_the_exception(error: type[Exception], tries: int) -> None:
    policy = ExceptionRetryPolicy(
        rules=[
            RetryRule(exception=ValueError, action=RetryAction.FAIL),
            RetryRule(exception=[ConnectionError, "requests.Timeout"], retries=1, retry_delay=timedelta(seconds=7)),
        ]
    )
    with DAG("d") as dag:

        @task(retries=2, retry_policy=policy, retry_jitter=0.5)
        def work() -> None:
            raise error

        work()
    assert ran(dag).tasks[0].tries == tries
    assert model.DagSpec.from_json(dag.to_spec().to_json()) == dag.to_spec()


@pytest.mark.parametrize("exception", ["ValueError", int, 3])
def test_a_rule_needs_an_exception(exception: Any) -> None:
    with DAG("d"), pytest.raises(BadSetting, match="an exception class or its dotted name"):
        ok("work", retry_policy=ExceptionRetryPolicy(rules=[RetryRule(exception=exception)]))


def test_airflows_names_of_exceptions() -> None:
    assert AirflowSkipException is TaskSkipped
    assert AirflowFailException is TaskFailedForGood
    assert issubclass(TaskSkipped, AirflowException)


# -- beside the model


class End(PythonOperator):
    """Ends as it is told, try by try."""

    def __init__(self, *, index: int, script: dict[tuple[int, int], list[tuple[str, list[int]]]], **options: Any) -> None:
        super().__init__(python_callable=lambda: None, **options)
        self.index, self.script = index, script

    def execute(self, context: Any) -> None:
        ti = context["ti"]
        outcome, skip = self.script[self.index, ti.map_index][ti.try_number - 1]
        if outcome != "success":
            raise {"failed": ValueError, "skipped": TaskSkipped, "failed_for_good": TaskFailedForGood}[outcome](outcome)
        ti.skipped_tasks.update(f"t{i}" for i in skip)


def built(spec: model.DagSpec, script: Any) -> DAG:
    with DAG(spec.dag_id) as dag:
        for i, each in enumerate(spec.tasks):
            options: dict[str, Any] = {"task_id": each.task_id, "retries": each.retries}
            if not each.teardown:
                options["trigger_rule"] = each.trigger_rule
            if each.empty:
                made: Any = EmptyOperator(**options)
            elif each.mapping is not None:
                made = End.partial(index=i, script=script, **options).expand(op_args=[[]] * (each.mapping.inputs[0].length or 0))
            else:
                made = End(index=i, script=script, **options)
            made.is_setup, made.is_teardown, made.on_failure_fail_dagrun = each.setup, each.teardown, each.on_failure_fail_dagrun
            for source in each.upstream:
                dag.task_dict[f"t{source}"] >> made
    return dag


@pytest.mark.parametrize("seed", range(150))
def test_dag_test_decides_as_the_model(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenflow.sdk.spec.check_flow", lambda dag, upstream: None)
    rng = random.Random(seed)
    spec, lengths = random_dag(rng)
    keys = [(i, m) for i in range(len(spec.tasks)) for m in (UNMAPPED, *range(lengths.get(i, 0)))]
    script = {key: [(rng.choice(OUTCOMES), random_skips(rng, spec, key[0])) for _ in range(2)] for key in keys}
    outcome = ran(built(spec, script))
    naive = NaiveRun(model.DagSpec(dag_id="d", tasks=spec.tasks), lengths)
    for end in outcome.tasks:
        index = int(end.task_id[1:])
        for ended, skip in script[index, end.map_index][: end.tries]:
            naive.end(index, end.map_index, ended, skip)
    found = {(int(end.task_id[1:]), end.map_index): end.state for end in outcome.tasks}
    assert found == naive.states
    assert outcome.state == naive.state
