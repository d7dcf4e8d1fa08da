"""What several schedulers get done where a turn is as long as its waits, counted in turns, and how evenly they share it."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from evenflow.core.model import DagSpec, TaskSpec
from evenflow.scheduler import advance as turn
from evenflow.scheduler.advance import TurnOutcome
from evenflow.scheduler.starts import leave
from tests.scheduler.staggered import staggered
from tests.scheduler.together.test_standby import IN_ORDER, altered
from tests.scheduler.world import Try, World

AT_ONCE = 10  # runs of a turn
RUNS = 10 * AT_ONCE
TASKS = 3  # of a run
MOST_TURNS = 200


def chain(dag_id: str, pool: str = "default_pool") -> DagSpec:
    tasks = [TaskSpec(task_id=f"t{i}", operator="python", pool=pool, upstream=(i - 1,) if i else ()) for i in range(TASKS)]
    return DagSpec(dag_id=dag_id, tasks=tuple(tasks), max_active_runs=None, max_active_tasks=None)


@dataclass(frozen=True, slots=True)
class Played:
    """``turns``: how many each scheduler took until all was done."""

    turns: float
    outcomes: dict[int, list[TurnOutcome]]

    @property
    def reports(self) -> list[int]:
        return [sum(outcome.reports for outcome in of_one) for of_one in self.outcomes.values()]

    @property
    def contended(self) -> float:
        """Of all picks."""
        every = [outcome for of_one in self.outcomes.values() for outcome in of_one]
        return sum(outcome.contended for outcome in every) / sum(outcome.picks for outcome in every)


def play(world: World, url: str, monkeypatch: pytest.MonkeyPatch, schedulers: int) -> Played:
    """All runs there are, from their creation to their end. A worker needs as long as a turn takes."""
    monkeypatch.setattr(turn, "random", random.Random(schedulers).random)
    left: int = world.one("select count(*) from dag_run where state = 'queued'") * TASKS
    steps, at_work = 0, [list[Try]() for _ in range(schedulers)]
    with staggered(url, schedulers, max_runs=AT_ONCE) as them:
        while left:
            assert steps < MOST_TURNS * schedulers
            them.step()
            steps += 1
            at_work.append(world.claim())
            ended = at_work.pop(0)
            world.report(ended)
            left -= len(ended)
    world.advance()
    assert world.one("select count(*) from dag_run where state <> 'success'") == 0
    world.audit()
    return Played(steps / schedulers, them.outcomes)


def trigger(world: World, runs: int, *pools: str) -> list[str]:
    """So many of DAGs that have nothing in common but the executor; answers their ids."""
    dag_ids = [f"{pool}_{n}" for n in range(2) for pool in pools]
    for dag_id in dag_ids:
        if world.one("select 1 from dag where dag_id = %s", dag_id) is None:
            world.add_dag(chain(dag_id, dag_id.removesuffix("_0").removesuffix("_1")))
    for n in range(runs):
        world.trigger(dag_ids[n % len(dag_ids)])
    return dag_ids


@pytest.mark.system
def test_three_do_at_least_twice_the_work_of_one(world: World, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-HA21, R-HA1: in the same number of turns, runs created by who has the lock included, and each does its share."""
    world.pool("wide", 10_000)
    trigger(world, RUNS, "wide")
    one = play(world, database_url, monkeypatch, 1)
    trigger(world, RUNS, "wide")
    three = play(world, database_url, monkeypatch, 3)
    assert one.turns >= 2 * three.turns, (one.turns, three.turns)
    assert min(three.reports) >= sum(three.reports) / 4, three.reports


@pytest.mark.system
@pytest.mark.parametrize("broken", [(), (IN_ORDER,)])
def test_they_are_seldom_in_each_others_way(
    world: World, database_url: str, monkeypatch: pytest.MonkeyPatch, broken: tuple[tuple[str, str], ...]
) -> None:
    """R-HA14: where more waits than they can take, one pick in six at most is contended. If all began with the oldest, more than
    half would be.
    """
    altered(monkeypatch, *broken)
    world.pool("wide", 10_000)
    trigger(world, RUNS, "wide")
    contended = play(world, database_url, monkeypatch, 3).contended
    assert contended > 0.5 if broken else contended <= 1 / 6, contended


@pytest.mark.system
@pytest.mark.parametrize("full", [False, True])
def test_they_select_in_parallel_in_pools_that_have_room(
    world: World, database_url: str, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    """R-ST7, R-HA1: each starts its share of what follows in a pool with room, also beside a full pool with a backlog. Who creates
    runs has the lock, and starts their first tasks.
    """
    for pool, slots in {"wide": 10_000, "broad": 10_000, "narrow": 2}.items():
        world.pool(pool, slots)
    dag_ids = trigger(world, RUNS, "wide", "broad")
    if full:
        trigger(world, AT_ONCE, "narrow")
    played = play(world, database_url, monkeypatch, 3)
    with_room = set(world.all("select run_key from dag_run where dag_id = any(%s)", dag_ids))
    starts = [
        sum(sent.run_key in with_room and sent.task_index > 0 for outcome in outcomes for sent in outcome.started.dispatches.sent)
        for outcomes in played.outcomes.values()
    ]
    assert sum(starts) == RUNS * (TASKS - 1)
    assert min(starts) >= sum(starts) / 5, starts


@pytest.mark.system
def test_if_all_were_left_to_the_lock_one_would_start_all(world: World, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above notices."""
    monkeypatch.setattr(turn, "swap", leave)
    with pytest.raises(AssertionError):
        test_they_select_in_parallel_in_pools_that_have_room(world, database_url, monkeypatch, full=False)
