"""A branch skips one root of a mapped group that has not been expanded: production and ``dag.test()`` say the same."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from evenflow import DAG, task, task_group
from tests.scheduler.world import World


def branching(rule: str) -> DAG:
    with DAG("d") as dag:

        @task.branch
        def choose() -> str:
            return "group.other"

        @task
        def numbers() -> list[int]:
            return [1, 2, 3]

        @task_group
        def group(number: Any) -> None:
            @task
            def root(number: int) -> None: ...

            @task
            def other(number: int) -> None: ...

            @task
            def after() -> None: ...

            @task(trigger_rule=rule)
            def end() -> None: ...

            skipped, taken = root(number), other(number)
            chosen >> [skipped, taken] >> end()
            skipped >> after()

        @task(trigger_rule="all_done")
        def out() -> None: ...

        chosen = choose()
        group.expand(number=numbers()) >> out()
    return dag


def summed(states: Any) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for name, state in states:
        found[name.partition("[")[0]].add(str(state))
    return found


@pytest.mark.parametrize("rule", ["all_success", "none_failed_min_one_success", "all_done", "all_skipped"])
@pytest.mark.parametrize("order", [("choose", "numbers"), ("numbers", "choose")])
def test_the_rest_of_the_group_goes_on(world: World, rule: str, order: tuple[str, str]) -> None:
    dag = branching(rule)
    spec = dag.to_spec()
    index_of = {task.task_id: index for index, task in enumerate(spec.tasks)}
    world.add_dag(spec)
    run = world.trigger("d")
    world.advance()
    live = {t.task_id: t for t in world.claim()}
    said: dict[str, dict[str, Any]] = {"choose": {"skip": [index_of["group.root"]]}, "numbers": {"result": [1, 2, 3]}}
    for name in order:
        world.report([live[name]], **said[name])
        world.advance()
    world.drain()
    world.audit()
    virtual = world.conn.execute(
        "select task_id, virtual_state::text"
        " from mapped_task join dag_run using (run_key) join task using (version_key, task_index)"
    )
    ended = [(name, state) for name, state in virtual.fetchall() if state == "skipped"]
    alone = dag.test(print_logs=False)
    assert summed([*world.states(run).items(), *ended]) == summed((t.task_id, t.state) for t in alone.tasks)
    assert summed(world.states(run).items())["group.end"] == {
        "success" if rule in ("none_failed_min_one_success", "all_done") else "skipped"
    }
