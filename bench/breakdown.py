"""Where the time of a task goes: python bench/breakdown.py [SHAPE ...] [-n REPEATS] [--statements].

Scheduler and worker take turns in one process, without pipelining, so that each statement's share can be told: CPU of its backend,
and CPU of this process since the statement before. A repeat makes the runs of the shape and ends all of their tasks at once; the
first two are warm-up.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import measure
from sequential import Sequential
from server import fresh_database, open_connection, serve
from shapes import SHAPES, total_tasks
from stored_shape import store_shape, trigger
from timed_connection import Cost, TimedConnection

from evenflow.store.db.connect import PLAN_ONCE

CLAIM = 500  # tries at once, as the simulated worker of run.py
WARM_UP = 2
# Phases in the order of a task's life, with the statements that belong to them: an area, or a statement of its own.
PHASES = {
    "trigger": ("other",),
    "create": (
        "runs/take_queued",
        "runs/start",
        "runs/insert_limits",
        "runs/insert_counters",
        "runs/read_version",
        "tasks/insert_instances",
        "tasks/write_mapped",
    ),
    "claim": ("dispatch/claim",),
    "report": ("dispatch/insert_reports",),
    "apply": ("inbox", "tasks", "runs"),
    "round": ("selection", "tasks/insert_dispatches"),
    "transaction": ("begin and commit", "notify"),
}
PHASE_OF = {statement: phase for phase, statements in PHASES.items() for statement in statements}
NOTE = (
    "create has all new rows (of mapped tasks those that start); apply has the moves and the history of all phases, each written"
    " once; Python is what leads to a statement and sends it; report has the building of the reports"
)


def phase_of(statement: str) -> str:
    return PHASE_OF.get(statement) or PHASE_OF[statement.split("/")[0]]


def run(url: str, case: str, repeats: int) -> tuple[dict[str, Cost], int, float]:
    """Costs by statement, how many tasks they are of, and tasks per second of wall time."""
    shape = SHAPES[case]
    plans = asyncio.run(store_shape(url, shape))
    total = total_tasks(shape)
    connect = TimedConnection.connect
    with connect(url, autocommit=True, options=PLAN_ONCE) as scheduler, connect(url, autocommit=True, options=PLAN_ONCE) as worker:
        driver = Sequential(scheduler, worker)
        elapsed = 0.0
        for repeat in range(WARM_UP + repeats):
            if repeat == 1:
                with open_connection(url, "bench") as conn:
                    conn.execute("analyze")
            if repeat == WARM_UP:
                scheduler.forget()
                worker.forget()
                elapsed = 0.0
            begin = time.perf_counter()
            worker.resume()
            trigger(worker, {p.spec.dag_id: p.runs for p in plans.values()}, f"bench_{repeat}_")
            done = 0
            while done < total:
                scheduler.resume()
                driver.settle()
                worker.resume()
                while tries := driver.given() or driver.claim(CLAIM, waits=True):
                    driver.report(tries)
                    done += len(tries)
            scheduler.resume()
            driver.settle()
            elapsed += time.perf_counter() - begin
        costs = {name: cost for conn in (scheduler, worker) for name, cost in conn.costs.items()}
        costs["begin and commit"] = _sum([conn.costs["begin and commit"] for conn in (scheduler, worker)])
        return costs, repeats * total, repeats * total / elapsed


def _sum(costs: list[Cost]) -> Cost:
    return Cost(sum(c.calls for c in costs), sum(c.postgres_s for c in costs), sum(c.python_s for c in costs))


def print_table(heading: str, rows: Mapping[str, Cost], tasks: int) -> None:
    print(f"{heading:34} {'calls':>7} {'PostgreSQL':>11} {'Python':>8}   us a task")
    for name, cost in rows.items():
        print(f"{name:34} {cost.calls:7} {cost.postgres_s * 1e6 / tasks:11.1f} {cost.python_s * 1e6 / tasks:8.1f}")
    whole = _sum(list(rows.values()))
    print(f"{'all':34} {whole.calls:7} {whole.postgres_s * 1e6 / tasks:11.1f} {whole.python_s * 1e6 / tasks:8.1f}\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", default=["a_i", "a_iii"], metavar="SHAPE")
    parser.add_argument("-n", "--repeats", type=int, default=10)
    parser.add_argument("--statements", action="store_true", help="each statement too")
    given = parser.parse_args()
    with serve(None) as server:
        for case in given.shapes:
            costs, tasks, rate = run(fresh_database(server, case), case, given.repeats)
            by_phase: dict[str, list[Cost]] = defaultdict(list)
            for name, cost in costs.items():
                by_phase[phase_of(name)].append(cost)
            print(f"{case}: {rate:.0f} tasks/s by turns, load {measure.load()}")
            print_table("phase", {phase: _sum(by_phase[phase]) for phase in PHASES if phase in by_phase}, tasks)
            if given.statements:
                dearest = sorted(costs.items(), key=lambda item: -item[1].postgres_s - item[1].python_s)
                print_table("statement", dict(dearest), tasks)
    print(NOTE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
