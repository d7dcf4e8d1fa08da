"""How long a task took is what its worker has measured, however late start and end were told."""

from __future__ import annotations

import pytest

from evenflow.core.model import DagSpec, TaskSpec
from tests.scheduler.world import World

DAG = DagSpec(dag_id="d", tasks=(TaskSpec(task_id="a", operator="python"),))


@pytest.mark.parametrize("late_s", [1.6, -3.0])
@pytest.mark.parametrize("outcome", ["success", "failed", "skipped"])
def test_a_duration_is_that_of_one_clock(world: World, late_s: float, outcome: str) -> None:
    """Start and end travel in requests of their own, each with its own delay."""
    world.add_dag(DAG)
    run = world.trigger("d")
    world.advance()
    (first,) = world.claim()
    world.report([first], started=True)
    world.conn.execute("update report set at = at + make_interval(secs => %s)", [late_s])
    world.advance()
    assert world.conn.execute("select started_at is not null, ended_at is null from task_instance").fetchone() == (True, True)
    world.report([first], outcome, ran_s=0.5)
    world.advance()
    took = "select extract(epoch from ended_at - started_at)::float8 from task_instance where run_key = %s"
    assert world.conn.execute(took, [run]).fetchone()[0] == pytest.approx(0.5)


def test_both_at_once(world: World) -> None:
    world.add_dag(DAG)
    world.trigger("d")
    world.advance()
    (first,) = world.claim()
    world.report([first], started=True)
    world.conn.execute("update report set at = at + interval '30 s'")
    world.report([first], ran_s=0.5)
    world.advance()
    assert world.conn.execute("select extract(epoch from ended_at - started_at)::float8 from task_instance").fetchone()[0] == 0.5
