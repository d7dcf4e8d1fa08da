"""What edges cost: python bench/graphs.py [--dsn URL].

creation   the transaction that creates a run of 10,000 tasks with 20,000 edges, and the reading of its version, once per scheduler
bipartite  300 tasks that each wait for 300 others (90,000 edges), by task, against a chain of as many tasks; "apart" where no
           two ends fall into one transaction

Scheduler and worker take turns in one process; 16 tasks run at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from operator import truediv
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import measure
from sequential import Sequential
from server import fresh_database, open_connection, serve
from stored_shape import store_specs, trigger

from evenflow.core.model import DEFAULT_POOL, DagSpec, TaskSpec

LAYER = 100  # tasks of the large run that stand side by side, each waiting for two of the layer before
LARGE = 10_000
SIDE = 300
SLOTS = 16
REPEATS = 5


def large() -> DagSpec:
    upstream = [() if i < LAYER else tuple(sorted({i - LAYER, i - i % LAYER - LAYER + (i + 1) % LAYER})) for i in range(LARGE)]
    return _dag("large", upstream)


def bipartite() -> DagSpec:
    return _dag("bipartite", [() if i < SIDE else tuple(range(SIDE)) for i in range(2 * SIDE)])


def chain() -> DagSpec:
    return _dag("chain", [(i - 1,) if i else () for i in range(2 * SIDE)])


def _dag(dag_id: str, upstream: list[tuple[int, ...]]) -> DagSpec:
    tasks = tuple(TaskSpec(task_id=f"t{i}", operator="python", upstream=u) for i, u in enumerate(upstream))
    return DagSpec(dag_id=dag_id, tasks=tasks, max_active_runs=None, max_active_tasks=SLOTS)


class Graphs:
    def __init__(self, url: str, scheduler: Any, worker: Any) -> None:
        self.worker = worker
        asyncio.run(store_specs(url, [large(), bipartite(), chain()], {DEFAULT_POOL: 1_000_000}))
        self.crew = Sequential(scheduler, worker)
        self.runs = 0

    def creation(self) -> dict[str, Any]:
        """In the first run the version is read and its graph made."""
        took = [self._create() for _ in range(REPEATS)]
        edges = sum(len(task.upstream) for task in large().tasks)
        return {"case": "creation", "tasks": LARGE, "edges": edges, "first_s": took[0], "then_s": statistics.median(took[1:])}

    def per_task(self) -> dict[str, Any]:
        took: dict[str, list[float]] = {"chain": [], "bipartite": [], "apart": []}
        for _ in range(REPEATS):  # by turns, so that all see the same machine
            took["chain"].append(self._finish("chain"))
            took["bipartite"].append(self._finish("bipartite"))
            took["apart"].append(self._finish("bipartite", apart=True))
        shown: dict[str, float] = {f"{name}_ms": statistics.median(ms) for name, ms in took.items()}
        for name in ("bipartite", "apart"):
            shown[f"{name}_ratio"] = round(statistics.median(map(truediv, took[name], took["chain"])), 2)
        return {"case": "bipartite", "tasks": 2 * SIDE, "edges": SIDE * SIDE, **shown}

    def _create(self) -> float:
        self._trigger("large")
        turn = self.crew.turn()
        self.worker.execute(
            "insert into report (run_key, kind, epoch) select run_key, 'cancel', 0 from dag_run where state = 'running'"
        )
        self.crew.settle()
        return round(turn.ms / 1e3, 3)

    def _finish(self, dag_id: str, *, apart: bool = False) -> float:
        """Milliseconds a task, the worker's part not counted. ``apart``: each end is a transaction, however many run."""
        self._trigger(dag_id)
        ms = sum(turn.ms for turn in self.crew.settle())
        while tries := self.crew.claim(SLOTS):
            for some in [[t] for t in tries] if apart else [tries]:
                self.crew.report(some)
                ms += sum(turn.ms for turn in self.crew.settle())
        assert self.worker.execute("select count(*) from dag_run where state = 'running'").fetchone() == (0,)
        return round(ms / (2 * SIDE), 3)

    def _trigger(self, dag_id: str) -> None:
        self.runs += 1
        trigger(self.worker, {dag_id: 1}, f"bench_{self.runs}_")
        self.worker.execute("analyze")  # statistics as autovacuum would have them


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dsn", help="a server to use in place of an embedded one")
    with serve(parser.parse_args().dsn) as server:
        url = fresh_database(server, "graphs")
        with open_connection(url, "scheduler", generic_plans=True) as scheduler, open_connection(url, "worker") as worker:
            graphs = Graphs(url, scheduler, worker)
            for case in (graphs.creation, graphs.per_task):
                print(json.dumps({**case(), "load": measure.load(), "at": time.strftime("%Y-%m-%dT%H:%M")}), flush=True)


if __name__ == "__main__":
    main()
