"""Operations, cancels and gates where tasks depend on each other index by index: in mapped groups, and behind a mapped task."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from evenflow.core.model import DagSpec, GroupSpec, MapInput, Mapping, TaskSpec
from evenflow.core.operations import Operation
from evenflow.core.states import TaskEvent
from evenflow.core.trigger_rules import TriggerRule
from evenflow.store.scheduling.operations import request
from tests.scheduler.world import Try, World

TEARDOWN: dict[str, Any] = {"teardown": True, "trigger_rule": TriggerRule.ALL_DONE_SETUP_SUCCESS}
FIRST = datetime(2026, 3, 1, tzinfo=UTC)


def over(length: int | None = None, *, task: int | None = None, kind: str = "product") -> Mapping:
    return Mapping(inputs=(MapInput(name="x", length=length, task=task),), kind=kind)


def task(task_id: str, *upstream: int, **fields: Any) -> TaskSpec:
    return TaskSpec(task_id=task_id, operator="python", upstream=upstream, **fields)


def grouped(*tasks: TaskSpec, mapping: Mapping, **fields: Any) -> DagSpec:
    return DagSpec(dag_id="d", tasks=tasks, groups=(GroupSpec(group_id="g", mapping=mapping),), **fields)


def started(world: World) -> dict[str, Try]:
    """What starts now, by name."""
    world.advance()
    world.audit()
    return {t.task_id if t.map_index < 0 else f"{t.task_id}[{t.map_index}]": t for t in world.claim()}


def operate(world: World, run: int, event: TaskEvent, *tasks: str, **fields: Any) -> None:
    request(world.conn, [run], Operation(event=event, actor="ann", tasks=tasks or None, **fields))


def finished(world: World, *, found: int = 2) -> int:
    """A run of find >> g(a >> b) >> end that has ended."""
    world.add_dag(grouped(task("find"), task("a", 0, group=0), task("b", 1, group=0), task("end", 2), mapping=over(task=0)))
    run = world.trigger("d")
    world.report(list(started(world).values()), result=list(range(found)))
    world.drain()
    assert world.run_state(run) == "success"
    return run


def test_one_index_is_cleared_with_what_follows_it_inside(world: World) -> None:
    run = finished(world)
    operate(world, run, TaskEvent.CLEAR, "a", map_indexes=(1,), downstream=True)
    first = started(world)
    assert list(first) == ["a[1]"]
    states = world.states(run)
    assert (states["b[0]"], states["b[1]"], states["end"]) == ("success", "none", "none")
    world.report(list(first.values()), "failed_for_good")
    assert started(world) == {}
    states = world.states(run)
    assert (states["b[0]"], states["b[1]"], states["end"]) == ("success", "upstream_failed", "upstream_failed")
    assert world.run_state(run) == "failed"


def test_a_mark_clears_what_failed_at_its_index(world: World) -> None:
    world.add_dag(grouped(task("a", group=0), task("b", 0, group=0), mapping=over(2)))
    run = world.trigger("d")
    world.report(list(started(world).values()), "failed_for_good")
    started(world)
    assert world.run_state(run) == "failed"
    operate(world, run, TaskEvent.MARK_SUCCESS, "a", map_indexes=(0,))
    assert list(started(world)) == ["b[0]"]
    assert world.states(run)["b[1]"] == "upstream_failed"


def test_a_group_that_is_cleared_as_a_whole_expands_anew(world: World) -> None:
    run = finished(world)
    operate(world, run, TaskEvent.CLEAR, "find", downstream=True)
    find = started(world)
    assert world.states(run) == {"find": "queued", "a": "none", "b": "none", "end": "none"}
    world.report(list(find.values()), result=["x", "y", "z"])
    assert sorted(started(world)) == ["a[0]", "a[1]", "a[2]"]


def test_a_run_is_cleared_while_a_group_runs(world: World) -> None:
    """All tasks of the group wait until the last process of any of them has ended."""
    world.add_dag(grouped(task("a", group=0), task("b", 0, group=0), mapping=over(2)))
    run = world.trigger("d")
    first = started(world)
    world.report([first["a[0]"]])
    second = started(world)
    operate(world, run, TaskEvent.CLEAR)
    assert started(world) == {}
    world.report([first["a[1]"]], "failed")
    assert started(world) == {}
    world.report([second["b[0]"]], "failed")
    assert sorted(started(world)) == ["a[0]", "a[1]"]


def test_followers_are_cleared_with_the_instance_that_they_follow(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a", mapping=over(2)), task("b", 0, mapping=over(task=0, kind="each")))))
    run = world.trigger("d")
    world.drain()
    operate(world, run, TaskEvent.CLEAR, "a", map_indexes=(0,), downstream=True)
    first = started(world)
    assert list(first) == ["a[0]"]
    assert world.states(run)["b[1]"] == "success"
    world.report(list(first.values()))
    assert list(started(world)) == ["b[0]"]
    operate(world, run, TaskEvent.CLEAR)
    started(world)
    assert set(world.states(run)) <= {"a", "b", "a[0]", "a[1]", "b[0]"}


def test_a_branch_skips_one_root_of_a_group_that_is_not_expanded_yet(world: World) -> None:
    tasks = (
        task("find"),
        task("choose"),
        task("a", 0, 1, group=0),
        task("b", 0, 1, group=0),
        task("c", 2, group=0),
        task("end", 2, 3, trigger_rule=TriggerRule.ALL_DONE),
    )
    world.add_dag(grouped(*tasks, mapping=over(task=0)))
    run = world.trigger("d")
    first = started(world)
    world.report([first["choose"]], skip=[2])
    assert started(world) == {}
    world.report([first["find"]], result=[1, 2])
    second = started(world)
    assert sorted(second) == ["b[0]", "b[1]"]
    assert world.states(run)["c[1]"] == "skipped"
    world.report(list(second.values()))
    assert list(started(world)) == ["end"]


def test_a_cancelled_run_tears_down_index_by_index(world: World) -> None:
    tasks = (
        task("make", group=0, setup=True),
        task("work", 0, group=0),
        task("more", 1, group=0),
        task("clean", 0, 2, group=0, **TEARDOWN),
    )
    world.add_dag(grouped(*tasks, mapping=over(3), max_active_tasks=2))
    run = world.trigger("d")
    first = started(world)
    assert sorted(first) == ["make[0]", "make[1]"]
    world.report([first["make[0]"]])
    world.resize("run", "", 3)
    world.advance()
    second = {**first, **started(world)}
    assert "make[2]" in second
    world.report([second["make[2]"]])
    third = {**second, **started(world)}
    assert {"work[0]", "work[2]", "make[1]"} <= third.keys()
    world.cancel(run)
    assert started(world) == {}  # what is being killed comes before the teardown of its index
    world.report([third["work[2]"]], "failed", reason="killed")
    clean = started(world)
    assert list(clean) == ["clean[2]"]
    assert world.states(run)["more[2]"] == "upstream_failed"
    world.report([third["work[0]"], third["make[1]"]], "failed", reason="killed")
    clean |= started(world)
    assert sorted(clean) == ["clean[0]", "clean[2]"]
    world.report(list(clean.values()))
    started(world)
    assert world.run_state(run) == "failed"
    assert world.states(run)["clean[1]"] == "upstream_failed"


def test_roots_of_a_group_wait_for_the_previous_run(world: World) -> None:
    world.add_dag(grouped(task("a", group=0, depends_on_past=True), mapping=over(2)))
    first, second = (world.trigger("d", logical_date=FIRST + timedelta(days=n)) for n in range(2))
    world.conn.execute("update dag_run set run_type = 'scheduled'")
    tries = started(world)
    assert {t.run_key for t in tries.values()} == {first}
    world.report(list(tries.values()))
    assert {t.run_key for t in started(world).values()} == {second}


def test_an_instance_that_is_born_into_a_lane_starts_from_it(world: World) -> None:
    """Its row is not written yet when the round takes it out of the lane again."""
    world.pool("p", 3)
    world.add_dag(
        grouped(
            task("a", group=0, pool="p", depends_on_past=True),
            task("b", 0, group=0, pool="p"),
            task("more", pool="p"),
            mapping=over(3),
        )
    )
    world.trigger("d")
    first = started(world)
    world.report(list(first.values()))
    assert len(started(world)) == 3


def test_a_run_that_is_cleared_waits_for_the_past_again(world: World) -> None:
    world.add_dag(DagSpec(dag_id="d", tasks=(task("a", depends_on_past=True),)))
    first, second = (world.trigger("d", logical_date=FIRST + timedelta(days=n)) for n in range(2))
    world.conn.execute("update dag_run set run_type = 'scheduled'")
    world.drain()
    operate(world, first, TaskEvent.CLEAR)
    (again,) = started(world).values()
    operate(world, second, TaskEvent.CLEAR)
    assert started(world) == {}
    world.report([again])
    assert [t.run_key for t in started(world).values()] == [second]
