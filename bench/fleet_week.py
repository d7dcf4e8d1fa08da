"""A week of a fleet that is simulated, by scalers beside each other: Evenflow's, an HPA on memory, KEDA on the length of a queue,
and KEDA on a query for tasks, which is told beside the bar.

The load is that of a data platform: a day has a curve, nights have batches of long tasks, every hour a burst of short ones. All
get the same tasks, workers and start time. The HPA and KEDA are as their documents describe them: the ratio of the metric with its
tolerance of 10 %, a look every 15 s, a stabilisation window of 5 minutes before fewer; neither knows what a worker runs.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fleet_simulation import Fleet, Outcome, Scaler, Task, evenflow

from evenflow.core.scaling.policy import ScalingPolicy
from evenflow.core.scaling.sizing import Look

CASE = "fleet_week"
DAY_S, WEEK_S = 86_400.0, 7 * 86_400.0
SLOTS, LEAST, MOST, START_S = 16, 1, 40, 30.0
POLICY = ScalingPolicy(  # half of it is free for bursts, which come faster than workers start
    min=5, max=MOST, slots=SLOTS, target_load=0.5, up_load=0.6, up_after=0.0, down_load=0.3, down_after=120.0
)
EVERY_S, HPA_EVERY_S, STABLE_S, TOLERANCE = 5.0, 15.0, 300.0, 0.1
MEMORY_TARGET = 0.7  # of what a worker may have, as people set it
IDLE_SHARE = 0.4  # of its memory a worker has without a task: Python, Spark's client and what was imported
TASK_SHARE = (1.0 - IDLE_SHARE) / SLOTS
QUEUE_TARGET = 5  # messages a worker: what KEDA has unless it is told otherwise
SAVED = 0.3  # worker-hours, with no longer a wait
PLOT = Path(__file__).parent / "results" / "fleet_week.svg"


def week(days: float = 7.0, seed: int = 1) -> list[Task]:
    """(when it comes, how long it runs), seconds."""
    rng = random.Random(seed)
    tasks: list[Task] = []
    at = 0.0
    while at < days * DAY_S:  # by day many, by night few, on a weekend half
        hour = at % DAY_S / 3600
        daily = 0.15 + 0.85 * max(0.0, math.sin(math.pi * (hour - 6) / 14)) if 6 <= hour <= 20 else 0.15
        rate = 0.9 * daily * (0.5 if at // DAY_S % 7 >= 5 else 1.0)
        at += rng.expovariate(rate)
        tasks.append((at, min(rng.lognormvariate(math.log(45.0), 1.1), 3_600.0)))
    for hour in range(int(days * 24)):
        tasks += [(hour * 3600 + rng.uniform(0, 20), rng.uniform(2, 40)) for _ in range(rng.choice((60, 120, 240)))]
    for day in range(math.ceil(days)):
        tasks += [(day * DAY_S + 2 * 3600 + rng.uniform(0, 60), rng.uniform(900, 5_400)) for _ in range(80)]
    return sorted(task for task in tasks if task[0] < days * DAY_S)


def by_ratio(metric: Any) -> Scaler:
    """The loop of a HorizontalPodAutoscaler: ``metric`` is how much of its target each worker has, on average."""
    wanted: deque[tuple[float, int]] = deque()
    looked_at = -math.inf

    def scaler(look: Look, fleet: Fleet) -> int:
        nonlocal looked_at
        if look.at - looked_at < HPA_EVERY_S:
            return fleet.wanted
        looked_at = look.at
        ratio = metric(look, fleet)
        size = fleet.wanted if abs(ratio - 1.0) <= TOLERANCE else math.ceil(max(fleet.wanted, 1) * ratio)
        size = min(max(size, LEAST), MOST)
        wanted.append((look.at, size))
        while wanted[0][0] < look.at - STABLE_S:
            wanted.popleft()
        return size if size > fleet.wanted else min(fleet.wanted, max(each for _, each in wanted))

    return scaler


def memory_of(look: Look, fleet: Fleet) -> float:
    """A process keeps the most that it ever had."""
    there = [worker for worker in fleet.workers.values() if worker.ready_at <= look.at]
    if not there:
        return 1.0
    return sum(IDLE_SHARE + TASK_SHARE * worker.memory for worker in there) / len(there) / MEMORY_TARGET


def queue_length_of(look: Look, fleet: Fleet) -> float:
    """What waits in the broker; what runs is not there any more."""
    return look.waiting / QUEUE_TARGET / max(fleet.wanted, 1)


def tasks_of(look: Look, fleet: Fleet) -> float:
    """What waits and what runs, by a query to a database, a worker for as many as it has slots."""
    return (look.waiting + look.running) / SLOTS / max(fleet.wanted, 1)


def scalers() -> Iterator[tuple[str, Scaler, bool]]:
    """(name, scaler, whether it ends workers with what they run)"""
    yield "evenflow", evenflow(POLICY), False
    yield "hpa_memory", by_ratio(memory_of), True
    yield "keda_queue", by_ratio(queue_length_of), True
    yield "keda_tasks", by_ratio(tasks_of), True


def simulate(days: float, seed: int = 1) -> dict[str, Outcome]:
    tasks = week(days, seed)
    return {
        name: Fleet(tasks, slots=SLOTS, start_s=START_S, evicts=evicts, size=LEAST).run(
            scaler, until=days * DAY_S + 3 * 3600, every_s=EVERY_S
        )
        for name, scaler, evicts in scalers()
    }


def run(*, days: float, plot: Path | None = PLOT) -> Iterator[dict[str, Any]]:
    outcomes = simulate(days)
    figures = {
        name: {
            "wait_s.p95": round(outcome.wait(0.95), 2),
            "wait_s.p50": round(outcome.wait(0.5), 2),
            "worker_hours": round(outcome.worker_s / 3600, 1),
            "evicted": outcome.evicted,
            "turns": outcome.turns,
        }
        for name, outcome in outcomes.items()
    }
    own = figures["evenflow"]
    others = [figures[name] for name in ("hpa_memory", "keda_queue")]
    if plot is not None:
        draw(outcomes, days, plot)
    yield {
        "ok": own["evicted"] == 0
        and all(
            own["wait_s.p95"] <= other["wait_s.p95"] and own["worker_hours"] <= (1 - SAVED) * other["worker_hours"]
            for other in others
        ),
        "days": days,
        "tasks": len(outcomes["evenflow"].waits),
        **figures,
        "saved": [round(1 - own["worker_hours"] / other["worker_hours"], 3) for other in others],
        "plot": None if plot is None else plot.name,
    }


def draw(outcomes: dict[str, Outcome], days: float, file: Path) -> None:
    """The sizes over the days, one picture below the other."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(outcomes), 1, sharex=True, figsize=(11, 2.2 * len(outcomes)))
    for axis, (name, outcome) in zip(axes, outcomes.items(), strict=True):
        steps = [*outcome.sizes, (days * DAY_S, outcome.sizes[-1][1])]
        axis.step([at / DAY_S for at, _ in steps], [size for _, size in steps], where="post", linewidth=0.8)
        axis.set_ylabel("workers")
        hours, evicted, wait_s = outcome.worker_s / 3600, outcome.evicted, outcome.wait(0.95)
        axis.set_title(f"{name}: {hours:,.0f} worker-hours, p95 of waits {wait_s:.1f} s, {evicted:,} tasks evicted", fontsize=9)
        axis.set_xlim(0, days)
    axes[-1].set_xlabel("day")
    figure.tight_layout()
    file.parent.mkdir(exist_ok=True)
    figure.savefig(file, metadata={"Date": None})
    pyplot.close(figure)
