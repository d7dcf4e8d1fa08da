"""What comes soon, from what runs: by the graph, by how long tasks take, and by what limits let in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.fleet_simulation import Fleet, Task
from evenflow.core.graph import Graph
from evenflow.core.mapping import MapInput
from evenflow.core.model import DagSpec, Mapping, TaskSpec
from evenflow.core.scaling.forecast import (
    Outlook,
    RunningTask,
    SlotChange,
    Successor,
    TaskHabits,
    ends_within,
    foresee,
    most_coming,
    places_behind,
    remaining,
)
from evenflow.core.scaling.policy import ScalingPolicy
from evenflow.core.scaling.sizing import LoadHistory, Look, decide
from evenflow.core.trigger_rules import TriggerRule, UpstreamCounts

MINUTE = TaskHabits((60.0,))


def task(name: str, *upstream: int, **terms: object) -> TaskSpec:
    return TaskSpec(task_id=name, operator="python", upstream=upstream, **terms)  # type: ignore[arg-type]


def foreseen(
    tasks: Sequence[TaskSpec],
    running: Sequence[RunningTask],
    successors: Sequence[Successor] | None = None,
    *,
    habits: dict[int, TaskHabits] | None = None,
    pools: dict[str, int] | None = None,
    ahead_s: float = 120.0,
) -> list[SlotChange]:
    """Of one version of a DAG whose tasks take a minute."""
    graphs = {1: Graph.of(DagSpec(dag_id="d", tasks=tuple(tasks)))}
    known = {(1, index): MINUTE for index in range(len(tasks))} | {(1, index): each for index, each in (habits or {}).items()}
    ends = ends_within(running, known, ahead_s)
    places = places_behind(ends, graphs)
    told = [Successor(*place) for place in sorted(places)] if successors is None else successors
    assert {(each.run_key, each.task_index) for each in told} <= places
    return foresee(ends, graphs, known, told, pools or {})


def coming(changes: list[SlotChange], queue: str = "default", ahead_s: float = 120.0) -> Outlook:
    return most_coming(changes, [queue], ahead_s)


FAN = [task("first"), *(task(f"t{n}", 0) for n in range(40))]


def test_a_try_ends_when_the_median_of_those_that_took_longer_is_over() -> None:
    """R-AS1: an overdue one ends at once, and one that has run for much longer than any before it, nobody knows when."""
    took = (10.0, 20.0, 30.0, 40.0, 100.0)
    assert remaining(took, 0.0) == 30.0
    assert remaining(took, 25.0) == 15.0
    assert remaining(took, 90.0) == 10.0
    assert remaining(took, 150.0) == 0.0
    assert remaining(took, 201.0) is None
    assert remaining((), 0.0) is None


def test_what_fans_out_comes_when_the_task_before_it_ends_and_takes_over_its_slot() -> None:
    """R-AS1"""
    changes = foreseen(FAN, [RunningTask(7, 1, 0, 1, ran_s=20.0)])
    assert changes[0] == SlotChange(40.0, "default", -1, "d.first")
    assert sum(change.tries for change in changes) == 39
    assert coming(changes) == Outlook(39, "39 more slots needed within 120 s: 40 after d.first")
    assert coming(changes, ahead_s=39.0) == Outlook()
    assert coming(changes, queue="other") == Outlook()


def test_a_chain_needs_no_slot_beside_the_one_that_it_has() -> None:
    chain = [task("a"), task("b", 0), task("c", 1)]
    assert coming(foreseen(chain, [RunningTask(run, 1, 0, 1, 30.0) for run in range(100)])) == Outlook()


@pytest.mark.parametrize(
    ("rule", "counts", "comes"),
    [
        (TriggerRule.ALL_SUCCESS, UpstreamCounts(3, 2), True),
        (TriggerRule.ALL_SUCCESS, UpstreamCounts(3, 1), False),
        (TriggerRule.ALL_SUCCESS, UpstreamCounts(3, 1, 1), False),
        (TriggerRule.ALL_DONE, UpstreamCounts(3, 1, 1), True),
        (TriggerRule.ONE_SUCCESS, UpstreamCounts(3), True),
        (TriggerRule.ONE_SUCCESS, UpstreamCounts(3, 1), False),  # it is there already
        (TriggerRule.ALL_FAILED, UpstreamCounts(3, 0, 2), False),
    ],
)
def test_a_join_comes_when_its_rule_says_so_once_what_runs_has_ended(
    rule: TriggerRule, counts: UpstreamCounts, comes: bool
) -> None:
    tasks = [task("a"), task("b"), task("c"), task("join", 0, 1, 2, trigger_rule=rule, queue="q")]
    changes = foreseen(tasks, [RunningTask(7, 1, 2, 1, 0.0)], [Successor(7, 3, counts)])
    assert coming(changes, "q").tries == int(comes)


def test_a_join_waits_for_the_last_of_what_runs() -> None:
    tasks = [task("a"), task("b"), task("join", 0, 1, queue="q")]
    running = [RunningTask(7, 1, 0, 1, 10.0), RunningTask(7, 1, 1, 1, 50.0)]
    changes = foreseen(tasks, running, [Successor(7, 2, UpstreamCounts(2))])
    assert [(change.in_s, change.tries) for change in changes if change.queue == "q"] == [(50.0, 1)]


def test_what_follows_a_task_without_code_comes_at_the_same_moment() -> None:
    tasks = [task("a"), task("join", 0, empty=True), *(task(f"t{n}", 1, queue="q") for n in range(5))]
    assert coming(foreseen(tasks, [RunningTask(7, 1, 0, 1, 0.0)]), "q") == Outlook(
        5, "5 more slots needed within 120 s: 5 after d.a"
    )


def test_a_mapped_task_comes_with_as_many_instances_as_it_had_last() -> None:
    tasks = [task("list"), task("load", 0, mapping=Mapping(inputs=(MapInput(name="x", task=0),)))]
    running = [RunningTask(7, 1, 0, 1, 0.0)]
    assert coming(foreseen(tasks, running, habits={1: TaskHabits(length=30)})).tries == 29
    assert coming(foreseen(tasks, running, habits={1: TaskHabits()})).tries == 0


def test_what_a_limit_will_hold_back_does_not_come() -> None:
    """R-AS1: of the run, and of the pool, with what ends until then."""
    running = [RunningTask(7, 1, 0, 1, 0.0)]
    places = [Successor(7, index, room=3) for index in range(1, 41)]
    assert coming(foreseen(FAN, running, places)).tries == 3
    assert coming(foreseen(FAN, running, pools={"default_pool": 9})).tries == 9
    wide = [FAN[0], *(replace(each, pool_slots=5) for each in FAN[1:])]
    assert coming(foreseen(wide, running, pools={"default_pool": 9})).tries == 1
    assert coming(foreseen(FAN, running, [])).tries == 0, "all have begun, or wait for the run before"


def test_the_moment_counts_at_which_most_is_needed() -> None:
    """What ends before makes room; what ends later does not."""
    changes = [
        SlotChange(1.0, "q", -4, "d.a"),
        SlotChange(2.0, "q", 10, "d.b"),
        SlotChange(3.0, "q", -8, "d.c"),
        SlotChange(4.0, "q", 7, "d.e"),
    ]
    assert most_coming(changes, ["q"], 10.0) == Outlook(6, "6 more slots needed within 10 s: 10 after d.b")
    assert most_coming([SlotChange(1.0, "q", -4, "d.a")], ["q"], 10.0) == Outlook()


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5), st.floats(0, 100)), max_size=30),
    st.dictionaries(st.just("default_pool"), st.integers(-5, 50)),
)
def test_no_forecast_asks_for_more_than_a_pool_has(rows: list[tuple[int, int, float]], pools: dict[str, int]) -> None:
    running = {run: RunningTask(run, 1, 0, tries, ran_s) for run, tries, ran_s in rows}
    changes = foreseen(FAN, list(running.values()), pools=pools)
    for at in {change.in_s for change in changes}:
        net = sum(change.tries for change in changes if change.in_s <= at)
        assert "default_pool" not in pools or net <= max(pools["default_pool"], 0)
    assert changes == sorted(changes, key=lambda change: change.in_s)


# -- a fleet that looks ahead


def simulated(
    tasks: list[Task], fans: list[tuple[float, float, int]], ahead_s: float, policy: ScalingPolicy, until: float
) -> Fleet:
    """``fans``: from when to when a task runs that so many follow. The forecast knows how long it takes, give or take a tenth."""
    graphs = {1: Graph.of(DagSpec(dag_id="d", tasks=tuple(FAN), max_active_tasks=None))}
    took = fans[0][1] - fans[0][0]
    habits = {(1, 0): TaskHabits((0.9 * took, took, 1.1 * took))}
    history = LoadHistory()

    def scaler(look: Look, fleet: Fleet) -> int:
        running = [RunningTask(n, 1, 0, 1, look.at - begin) for n, (begin, end, _) in enumerate(fans) if begin <= look.at < end]
        ends = ends_within(running, habits, ahead_s)
        places = [Successor(*place) for place in places_behind(ends, graphs)]
        outlook = most_coming(foresee(ends, graphs, habits, places, {}), ["default"], ahead_s)
        history.add(replace(look, expected=outlook.tries if ahead_s else 0, outlook=outlook.reason), policy)
        to = decide(history, policy).replicas
        if to != look.replicas:
            history.moved(look.at, to - look.replicas)
        return to

    firsts = [(begin, end - begin) for begin, end, _ in fans]
    after = [(end, 30.0) for _, end, number in fans for _ in range(number)]
    fleet = Fleet([*tasks, *firsts, *after], slots=10, start_s=30)
    fleet.run(scaler, until=until, every_s=1)
    return fleet


POLICY = ScalingPolicy(min=0, max=20, slots=10, up_after=5, down_after=120)


def test_a_fleet_that_looks_ahead_is_large_before_a_step() -> None:
    """R-AS2, R-AS7: workers take 30 s to start; whoever looks a minute ahead has them there when the step comes."""
    fans = [(10.0, 310.0, 40)]
    late, early = simulated([], fans, 0.0, POLICY, 600), simulated([], fans, 60.0, POLICY, 600)
    assert late.outcome.size_at(309) == 1
    assert early.outcome.size_at(255) == 5
    assert late.outcome.wait(0.5) > 30
    assert early.outcome.wait(0.95) == 0
    assert max(early.outcome.waits) == pytest.approx(30, abs=1), "only the first task waits, for the first worker"


def test_a_fleet_that_looks_ahead_makes_no_swing() -> None:
    """R-AS2: one hill for each step, also where forecasts come early or late; and none while steps return within Y."""
    apart = [(1_000.0 * n, 1_000.0 * n + took, 40) for n, took in enumerate((300.0, 275.0, 329.0, 300.0))]
    assert simulated([], apart, 60.0, POLICY, 4_000).outcome.turns <= 2 * 4 - 1
    close = [(150.0 * n, 150.0 * n + 100.0, 40) for n in range(10)]
    sizes = [size for _, size in simulated([], close, 60.0, POLICY, 1_500).outcome.sizes]
    assert sizes == sorted(sizes)
    nothing = simulated([(0.0 + n, 30.0) for n in range(600)], [(0.0, 1e6, 0)], 60.0, POLICY, 600)
    plain = simulated([(0.0 + n, 30.0) for n in range(600)], [(0.0, 1e6, 0)], 0.0, POLICY, 600)
    assert nothing.outcome.sizes == plain.outcome.sizes, "what does not end soon changes nothing"
