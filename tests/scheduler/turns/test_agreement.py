"""The whole path on PostgreSQL against a naive model, turn by turn: who starts, which limits are held, how runs end."""

from __future__ import annotations

import random

import pytest

from evenflow.core.selection import loading
from evenflow.store.scheduling import lanes
from tests.scheduler.game import Match, Naive, random_pools
from tests.scheduler.workloads import random_dag
from tests.scheduler.world import World


@pytest.mark.parametrize("seed", range(16))
def test_the_scheduler_agrees_with_a_naive_scan(world: World, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-ST1, R-ST2, R-ST3, R-ST11, R-DQ7: turn by turn the same tasks start, in pools that backfill and strict ones, through
    pauses, cancels and retries, while limits rise and fall and pools are closed and opened; no limit is exceeded, and every counter
    is what it counts.
    """
    r = random.Random(seed)
    if seed % 2:  # open lanes are looked at by base, as where thousands of limit classes have some
        for module in (loading, lanes):
            monkeypatch.setattr(module, "MOST_LIMIT_CLASSES", 0)
    naive = Naive(random_pools(r))
    if r.random() < 0.5:
        naive.strict.add("p1")
    match = Match(world, naive, r, [random_dag(r, i) for i in range(3)])
    match.play(40, trigger=0.6, pause=0.15, close=0.15, resize=0.2, cancel=0.1)
    states = {run: world.run_state(run) for run in naive.specs}
    assert states == {run: "failed" if run in match.cancelled else "success" for run in naive.specs}
