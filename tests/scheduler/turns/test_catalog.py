"""What a scheduler remembers between transactions is bounded, and is enough for many DAGs."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import replace

import pytest

from evenflow.core.model import DagSpec, RunParamSpec, TaskSpec
from evenflow.scheduler import catalog as remembering
from evenflow.scheduler.catalog import Catalog, Recent, Version
from tests.scheduler.world import World

TRACE = 6  # frames: enough to be cheap


def dag(name: str, tasks: int) -> DagSpec:
    chain = (TaskSpec(task_id=f"t{i}", operator="python", upstream=(i - 1,) if i else ()) for i in range(tasks))
    return DagSpec(dag_id=name, tasks=tuple(chain), max_active_runs=None)


def test_what_was_not_used_for_longest_is_forgotten_by_weight() -> None:
    recent: Recent[str, int] = Recent(10, lambda weight: weight)
    for key, weight in {"a": 4, "b": 4, "c": 2}.items():
        recent.put(key, weight)
    assert len(recent) == 3
    recent.get("a")
    recent.put("d", 1)
    assert [recent.get(key) for key in "abcd"] == [4, None, 2, 1]
    recent.put("d", 4)
    assert len(recent) == 3, "what is put again does not weigh twice"
    assert recent.put("e", 100) == 100
    assert [recent.get(key) for key in "acde"] == [4, 2, 4, None], "what weighs too much is not kept, and costs the others nothing"


def test_a_version_is_read_once_while_there_is_room_for_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-ST8: many small DAGs are all remembered, large ones are not."""
    small = [world.add_dag(dag(f"small{i}", 10)) for i in range(8)]
    large = world.add_dag(dag("large", 95))
    weight = Version.of(dag("small0", 10).to_json()).weight
    monkeypatch.setattr(remembering, "VERSIONS", 10 * weight)
    reads: list[set[int]] = []
    read_specs = remembering.runs.read_specs
    monkeypatch.setattr(remembering.runs, "read_specs", lambda conn, keys: reads.append(set(keys)) or read_specs(conn, keys))
    catalog = Catalog()
    for version in [*small, *small]:
        catalog.versions(world.conn, [version])
    assert reads == [{version} for version in small]
    assert catalog.versions(world.conn, [large])[large].graph.n == 95
    catalog.versions(world.conn, [small[-1]])
    assert reads[8:] == [{large}]
    catalog.versions(world.conn, [small[0]])
    assert reads[9:] == [{small[0]}]


def test_what_a_version_weighs_is_about_what_it_takes() -> None:
    """R-ST8: memory is bounded in bytes, so the estimate must hold for a bare DAG as for one with much text."""
    bare = dag("bare", 20)
    told = replace(bare, tasks=tuple(replace(task, retries=3, doc=f"{task.task_id:=<200}") for task in bare.tasks))
    asks = replace(bare, params={f"p{i}": RunParamSpec(default=i, schema={"type": "integer", "enum": [i, -i]}) for i in range(20)})
    for spec in (dag("one", 1), bare, told, asks):
        text = spec.to_json()
        Version.of(text)
        tracemalloc.start()
        version = Version.of(text)
        took, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert 0.6 < version.weight / took < 2, spec.dag_id


@pytest.mark.system
def test_memory_does_not_grow_with_the_number_of_active_runs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-ST8: three times as many runs in hand, and a scheduler keeps nothing more of them between its transactions."""
    monkeypatch.setattr(remembering, "RUNS", 600)  # above the runs of one transaction
    world.catalog = Catalog()
    world.add_dag(dag("d", 3))
    kept = []
    tracemalloc.start(TRACE)
    try:
        for _ in range(3):
            world.conn.execute(
                "insert into dag_run (dag_id, run_id, version_key, run_type)"
                " select 'd', gen_random_uuid()::text, version_key, 'manual' from dag, generate_series(1, 700) where dag_id = 'd'"
            )
            world.advance()
            world.report(world.claim(50))
            world.advance()
            gc.collect()
            kept.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert world.conn.execute("select count(*) from dag_run where state = 'running'").fetchone() == (2_100,)
    assert kept[2] - kept[0] < 100_000, kept
