"""The decisions that the scheduler makes from counters, against those that read every upstream."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.core.graph import Graph
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.core.states import TaskState
from evenflow.core.trigger_rules import TriggerRule, UpstreamCounts, Verdict, contribution, counted_as, evaluate
from tests.core.naive_run import NaiveRun, decide
from tests.core.random_runs import OUTCOMES, random_dag, random_skips

S = TaskState
BECOMES = {
    Verdict.WAIT: None,
    Verdict.READY: S.SCHEDULED,
    Verdict.SKIP: S.SKIPPED,
    Verdict.UPSTREAM_FAIL: S.UPSTREAM_FAILED,
}
UPSTREAM_STATES = [S.NONE, S.RUNNING, S.SUCCESS, S.FAILED, S.SKIPPED, S.UPSTREAM_FAILED]


def counts_of(rule: TriggerRule, upstreams: list[tuple[TaskState, bool]]) -> UpstreamCounts:
    given = [contribution(rule, counted_as(state), setup=setup) for state, setup in upstreams]
    return UpstreamCounts(*map(sum, zip(UpstreamCounts(len(upstreams)), *given, strict=True)))


@pytest.mark.system
@settings(max_examples=4000, deadline=None)
@given(st.sampled_from(TriggerRule), st.lists(st.tuples(st.sampled_from(UPSTREAM_STATES), st.booleans()), max_size=6))
def test_counters_decide_as_the_states_do(rule: TriggerRule, upstreams: list[tuple[TaskState, bool]]) -> None:
    naive = decide(rule, [state for state, _ in upstreams], [state for state, setup in upstreams if setup])
    assert BECOMES[evaluate(rule, counts_of(rule, upstreams))] == naive


@pytest.mark.system
@settings(max_examples=1500, deadline=None)
@given(st.integers(0, 2**32))
def test_every_random_run_ends(seed: int) -> None:
    """The model itself: whatever the order, nothing is left waiting, and nothing starts before what it waits for."""
    rng = random.Random(seed)
    spec, lengths = random_dag(rng)
    run = NaiveRun(spec, lengths)
    while ready := sorted(run.may_run()):
        if rng.random() < 0.03:
            run.cancel()
            continue
        task_index, map_index = rng.choice(ready)
        run.end(task_index, map_index, rng.choice(OUTCOMES), random_skips(rng, spec, task_index))
    assert run.state is not None


def dag(*tasks: TaskSpec) -> Graph:
    return Graph.of(DagSpec(dag_id="d", tasks=tasks))


def task(name: str, *upstream: int, **fields: bool) -> TaskSpec:
    return TaskSpec(task_id=name, operator="python", upstream=upstream, **fields)


def test_a_teardown_passes_the_duty_of_a_leaf_on() -> None:
    graph = dag(task("make", setup=True), task("work", 0), task("clean", 0, 1, teardown=True))
    assert graph.leaf == (False, True, False)


def test_a_teardown_that_fails_the_run_is_a_leaf() -> None:
    graph = dag(task("work"), task("clean", 0, teardown=True, on_failure_fail_dagrun=True))
    assert graph.leaf == (False, True)


def test_of_teardowns_alone_the_last_decides() -> None:
    assert dag(task("a", teardown=True), task("b", 0, teardown=True)).leaf == (False, True)


@pytest.mark.parametrize(
    ("setups", "verdict"),
    [
        ([S.SUCCESS, S.FAILED], Verdict.READY),
        ([S.SKIPPED, S.FAILED], Verdict.UPSTREAM_FAIL),
        ([S.SKIPPED, S.SKIPPED], Verdict.SKIP),
        ([], Verdict.READY),
        ([S.SUCCESS, S.RUNNING], Verdict.WAIT),
    ],
)
def test_a_teardown_runs_when_a_setup_succeeded(setups: list[TaskState], verdict: Verdict) -> None:
    rule = TriggerRule.ALL_DONE_SETUP_SUCCESS
    assert evaluate(rule, counts_of(rule, [(S.FAILED, False), *((state, True) for state in setups)])) is verdict
