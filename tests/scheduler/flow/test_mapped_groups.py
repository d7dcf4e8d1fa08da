"""Mapped groups, and tasks that follow a mapped task: examples, and random DAGs whose ends must fit each other."""

from __future__ import annotations

import random
from typing import Any

import pytest

from evenflow.core.model import DagSpec, GroupSpec, Mapping, TaskSpec
from evenflow.core.states import TaskState
from evenflow.core.trigger_rules import TriggerRule
from tests.core.random_groups import EACH, check_ends, over, random_spec, task
from tests.scheduler.world import Try, World


def grouped(*tasks: TaskSpec, mapping: Mapping, **fields: Any) -> DagSpec:
    return DagSpec(dag_id="d", tasks=tasks, groups=(GroupSpec(group_id="g", mapping=mapping),), **fields)


def started(world: World) -> dict[str, Try]:
    """What starts now, by name."""
    world.advance()
    return {t.task_id if t.map_index < 0 else f"{t.task_id}[{t.map_index}]": t for t in world.claim()}


def test_each_index_of_a_group_proceeds_on_its_own(world: World) -> None:
    world.add_dag(grouped(task("a", group=0), task("b", 0, group=0), task("end", 1), mapping=over(3)))
    run = world.trigger("d")
    first = started(world)
    assert sorted(first) == ["a[0]", "a[1]", "a[2]"]
    world.report([first["a[2]"]])
    second = started(world)
    assert list(second) == ["b[2]"]
    world.report([second["b[2]"], first["a[0]"], first["a[1]"]])
    rest = started(world)
    assert sorted(rest) == ["b[0]", "b[1]"]
    world.report(list(rest.values()))
    end = started(world)
    assert list(end) == ["end"]
    world.audit()
    world.report(list(end.values()))
    world.advance()
    assert world.run_state(run) == "success"


def test_a_group_over_a_result_waits_for_it(world: World) -> None:
    world.add_dag(grouped(task("find"), task("a", 0, group=0), task("b", 1, group=0), task("end", 2), mapping=over(task=0)))
    run = world.trigger("d")
    find = started(world)
    assert world.states(run) == {"find": "queued", "a": "none", "b": "none", "end": "none"}
    world.report(list(find.values()), result=["x", "y"])
    assert sorted(started(world)) == ["a[0]", "a[1]"]
    world.audit()


@pytest.mark.parametrize(
    ("outcome", "result", "ends"),
    [
        ("success", [], {"a": "skipped", "b": "skipped", "end": "skipped"}),
        ("skipped", None, {"a": "skipped", "b": "skipped", "end": "skipped"}),
        ("failed_for_good", None, {"a": "upstream_failed", "b": "upstream_failed", "end": "upstream_failed"}),
        ("success", 7, {"a": "failed", "b": "upstream_failed", "end": "upstream_failed"}),
        ("success", [1, 2, 3], {"a": "failed", "b": "upstream_failed", "end": "upstream_failed"}),
    ],
)
def test_a_group_that_can_have_no_instances_ends_as_a_whole(world: World, outcome: str, result: Any, ends: dict[str, str]) -> None:
    tasks = (task("find"), task("a", 0, group=0), task("b", 1, group=0), task("end", 2))
    world.add_dag(grouped(*tasks, mapping=over(task=0), max_map_length=2))
    run = world.trigger("d")
    world.report(list(started(world).values()), outcome, **({} if result is None else {"result": result}))
    world.advance()
    assert {name: state for name, state in world.states(run).items() if name != "find"} == ends
    assert world.run_state(run) == ("success" if "skipped" in ends.values() else "failed")


def test_a_failure_stays_in_its_index(world: World) -> None:
    done = task("c", 1, group=0, trigger_rule=TriggerRule.ALL_DONE)
    world.add_dag(grouped(task("a", group=0), task("b", 0, group=0), done, mapping=over(2)))
    run = world.trigger("d")
    first = started(world)
    world.report([first["a[0]"]], "failed_for_good")
    world.report([first["a[1]"]])
    assert sorted(started(world)) == ["b[1]", "c[0]"]
    assert world.states(run)["b[0]"] == "upstream_failed"


def test_an_untouched_instance_has_no_row_and_no_counter(world: World) -> None:
    world.add_dag(grouped(task("out"), task("a", group=0), task("b", 0, 1, group=0), mapping=over(1000), max_active_tasks=2))
    run = world.trigger("d")
    first = started(world)
    assert sorted(first) == ["a[0]", "out"]
    world.report([first["a[0]"]])
    world.advance()
    assert world.conn.execute("select count(*) from task_instance where map_index >= 0").fetchone() == (2,)
    assert world.conn.execute("select map_index from upstream_counter where run_key = %s order by 1", [run]).fetchall() == [
        (-1,),
        (0,),
    ]
    world.audit()
    world.report([first["out"]])
    assert "b[0]" in started(world) or world.states(run)["b[0]"] == "scheduled"
    world.cancel(run)
    world.advance()
    world.report(world.claim(), "failed_for_good")
    world.audit()


def test_an_upstream_outside_fails_all_instances_at_once(world: World) -> None:
    world.add_dag(grouped(task("out"), task("a", group=0), task("b", 0, 1, group=0), mapping=over(3)))
    run = world.trigger("d")
    first = started(world)
    world.report([first["out"]], "failed_for_good")
    world.advance()
    assert [world.states(run)[f"b[{i}]"] for i in range(3)] == ["upstream_failed"] * 3
    world.report([t for name, t in first.items() if name != "out"])
    world.advance()
    assert world.run_state(run) == "failed"


def test_a_task_follows_a_mapped_task_index_by_index(world: World) -> None:
    tasks = (
        task("a", mapping=over(3)),
        task("b", 0, mapping=over(task=0, kind=EACH)),
        task("c", 1, mapping=over(task=1, kind=EACH)),
        task("end", 2),
    )
    world.add_dag(DagSpec(dag_id="d", tasks=tasks))
    run = world.trigger("d")
    first = started(world)
    world.report([first["a[1]"]])
    second = started(world)
    assert list(second) == ["b[1]"]
    world.report([first["a[0]"]], "failed_for_good")
    world.report([first["a[2]"], second["b[1]"]])
    third = started(world)
    assert sorted(third) == ["b[2]", "c[1]"]
    assert {name for name, state in world.states(run).items() if state == "upstream_failed"} == {"b[0]", "c[0]", "end"}
    world.audit()
    world.report(list(third.values()))
    world.report(list(started(world).values()))
    world.advance()
    assert world.run_state(run) == "failed"


def test_what_follows_a_mapped_task_without_instances_ends_with_it(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a", mapping=over(0)), task("b", 0, mapping=over(task=0, kind=EACH)))))
    run = world.trigger("d")
    world.advance()
    assert world.states(run) == {"a": "skipped", "b": "skipped"}
    assert world.run_state(run) == "success"


@pytest.mark.parametrize("length", [2, None])
def test_a_branch_outside_skips_a_group_expanded_or_not(world: World, length: int | None) -> None:
    tasks = (task("choose"), task("find"), task("a", *((0,) if length else (0, 1)), group=0), task("b", 2, group=0), task("end", 3))
    world.add_dag(grouped(*tasks, mapping=over(length, task=None if length else 1)))
    run = world.trigger("d")
    first = started(world)
    world.report([first["choose"]], "success", skip=[2])
    world.advance()
    world.report([first["find"]], result=["x", "y"])
    world.advance()
    assert {state for name, state in world.states(run).items() if name not in ("choose", "find")} == {"skipped"}
    assert len(world.states(run)) == (7 if length else 5)
    assert world.run_state(run) == "success"


def test_a_run_can_be_cancelled_before_its_group_is_expanded(world: World) -> None:
    teardown = task("t", 1, group=0, teardown=True, trigger_rule=TriggerRule.ALL_DONE_SETUP_SUCCESS)
    world.add_dag(grouped(task("find"), task("a", 0, group=0, setup=True), teardown, mapping=over(task=0)))
    run = world.trigger("d")
    first = started(world)
    world.cancel(run)
    world.advance()
    world.report(list(first.values()), "failed_for_good")
    world.advance()
    assert world.run_state(run) == "failed"
    assert not {"none", "scheduled"} & set(world.states(run).values())


# -- random DAGs -------------------------------------------------------------------------------------------------------


def run_at_random(world: World, r: random.Random, run_key: int) -> None:
    running: list[Try] = []
    for _ in range(500):
        world.advance()
        running += world.claim()
        world.audit()
        if not running:
            return
        r.shuffle(running)
        for _ in range(r.randint(1, len(running))):
            outcome = r.choices(["success", "failed_for_good", "skipped"], [8, 1, 1])[0]
            result = {"result": list(range(r.randint(0, 3)))} if outcome == "success" and r.random() < 0.9 else {}
            world.report([running.pop()], outcome, **result)
    raise AssertionError("the run does not end")


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_end_as_their_rules_say(world: World, seed: int) -> None:
    r = random.Random(seed)
    spec = random_spec(r)
    assert DagSpec.from_json(spec.to_json()) == spec
    world.add_dag(spec)
    run_key = world.trigger("d")
    run_at_random(world, r, run_key)
    assert world.run_state(run_key) in ("success", "failed")
    ends: dict[int, dict[int, TaskState]] = {index: {} for index in range(len(spec.tasks))}
    for index, map_index, state in world.conn.execute(
        "select task_index, map_index, state::text from task_instance where run_key = %s", [run_key]
    ):
        ends[index][map_index] = TaskState(state)
    lengths = dict(world.conn.execute("select task_index, length from mapped_task where run_key = %s", [run_key]).fetchall())
    check_ends(spec, ends, lengths)
