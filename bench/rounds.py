"""How long a round takes, against the backlog: python bench/rounds.py CASE [-n SIZE] [--finished TASKS] [--snapshot].

lanes   SIZE runs of a DAG of their own, each at its own cap, with distinct priorities, above work that can run
mapped  SIZE mapped instances over ten tasks, behind a pool with one slot, above work that can run
burst   SIZE open lanes of one task, of which one may run at a time, above a task that can start

Scheduler and worker take turns in one process. In ``lanes`` and ``mapped`` five tasks end and five start in each turn; ``burst`` is
the time until the task that can start has started.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import measure
from backlog import add_finished, copy_dag, copy_run
from sequential import Sequential, Try, Turn
from server import fresh_database, open_connection, open_snapshot, serve
from shapes import SHAPES, Shape
from stored_shape import store_shape, trigger

from evenflow.store.db.rows import Conn

RESULTS = Path(__file__).parent / "results"
SIZES = {"lanes": 1_000, "mapped": 1_000_000, "burst": 100_000}
WARM_UP = 10  # turns: the server plans a statement anew five times
EXITS = 5  # a turn
MAPPED_TASKS = 10
PREFIX = "bench_"


def lanes_shape(turns: int) -> Shape:
    """c_lanes with one of the blocked DAGs, of which the others are copies."""
    shape = SHAPES["c_lanes_1000"]
    blocked, run = shape["groups"]
    return {**shape, "groups": [{**blocked, "dags": 1}, runnable(run, turns)]}


def mapped_shape(size: int, turns: int) -> Shape:
    shape = SHAPES["c_pool_1000"]
    blocked, run = shape["groups"]
    return {**shape, "groups": [{**blocked, "dags": MAPPED_TASKS, "n": size // MAPPED_TASKS}, runnable(run, turns)]}


def runnable(group: dict[str, Any], turns: int) -> dict[str, Any]:
    """As much of it as that many turns need, and some that always waits."""
    return {**group, "n": EXITS * (turns + WARM_UP) + 100}


def burst_shape() -> Shape:
    """Lanes gather behind a pool whose only slot is taken; then it opens, and the limit of their task fills under them."""
    one = {"dags": 1, "graph": "parallel", "n": 1, "body": "noop", "pool": "narrow"}
    return {
        "pools": {"narrow": 1},
        "groups": [
            {"name": "holder", "priority": 1000, **one},
            {"name": "blk", "priority": 100, "max_active": 1, **one},
            {"name": "run", "priority": 1, **one},
        ],
    }


class Room:
    """A database with a shape in it, and a scheduler and a worker that take turns."""

    def __init__(self, url: str, scheduler: Conn, worker: Conn, shape: Shape) -> None:
        self.url = url
        self.driver = Sequential(scheduler, worker)
        self.worker = worker
        self.plans = asyncio.run(store_shape(url, shape))

    def start(self, group: str) -> int:
        """Triggers every DAG of a group and lets the scheduler settle; answers the key of the first DAG's run."""
        trigger(self.worker, {p.spec.dag_id: p.runs for p in self.plans.values() if p.group == group}, PREFIX)
        self.driver.settle()
        return self.run_key(f"{group}_000")

    def run_key(self, dag_id: str) -> int:
        row = self.worker.execute("select min(run_key) from dag_run where dag_id = %s", [dag_id]).fetchone()
        assert row is not None
        return int(row[0])

    def age(self, finished: int) -> None:
        """Adds history, then cleans and counts as autovacuum would have done."""
        if finished:
            add_finished(self.worker, finished)
        self.worker.execute("vacuum analyze")

    def blocks(self) -> int | None:
        """Blocks that the scheduler's backend has hit or read so far, if the server can tell."""
        measure.flush(self.driver.scheduler)
        return measure.blocks(self.worker, [self.driver.scheduler.info.backend_pid])


def fill(room: Room, case: str, size: int) -> list[Try]:
    """The backlog of ``lanes`` or ``mapped``, and the work that can run; answers what of that the worker holds."""
    blocked = room.start("blk")
    room.driver.claim(MAPPED_TASKS)  # what keeps the others out
    if case == "lanes" and size > 1:
        copy_dag(room.worker, blocked, size - 1, group="blk")
    running = room.start("run")
    return [t for t in room.driver.claim(1_000) if t.run_key == running]


def turn_about(room: Room, held: list[Try], turns: int) -> list[Turn]:
    """So many times: five tries end, the scheduler takes as many turns as it wants, five more are claimed."""
    taken: list[Turn] = []
    for _ in range(turns):
        room.driver.report(held[:EXITS])
        mine = room.driver.settle()
        held[:] = [*held[EXITS:], *room.driver.claim(EXITS)]
        if (started := sum(t.progress.starts for t in mine)) != EXITS:
            raise RuntimeError(f"{EXITS} tasks ended and {started} started.")
        taken += mine
    return taken


def measure_rounds(room: Room, case: str, size: int, *, turns: int, finished: int, snapshot: bool) -> dict[str, Any]:
    begin = time.perf_counter()
    held = fill(room, case, size)
    room.age(finished)
    filled_s = time.perf_counter() - begin
    with open_snapshot(room.url, wanted=snapshot):
        first = turn_about(room, held, 1)[0]
        turn_about(room, held, WARM_UP - 1)
        before = room.blocks()
        taken = turn_about(room, held, turns)
        after = room.blocks()
    starts = sum(t.progress.starts for t in taken)
    return {
        "filled_s": round(filled_s, 1),
        "turns": len(taken),
        "starts": starts,
        "round_ms": measure.quantiles([t.ms for t in taken], 2),
        "first_round_ms": round(first.ms, 2),
        "lanes_touched_per_start": round(sum(t.progress.started.lanes_touched for t in taken) / starts, 2),
        "buffers_per_start": None if before is None or after is None else round((after - before) / starts, 1),
    }


def measure_burst(room: Room, size: int, *, finished: int, snapshot: bool) -> dict[str, Any]:
    begin = time.perf_counter()
    room.start("holder")
    holder = room.driver.claim(1)
    blocked = room.start("blk")
    copy_run(room.worker, blocked, size - 1, prefix=PREFIX)
    startable = room.start("run")
    room.age(finished)
    filled_s = time.perf_counter() - begin
    room.worker.execute("update concurrency_limit set capacity = 16 where kind = 'pool' and name = 'narrow'")
    with open_snapshot(room.url, wanted=snapshot):
        room.driver.report(holder)
        turns: list[Turn] = []
        while not room.worker.execute("select exists (select from dispatch where run_key = %s)", [startable]).fetchone()[0]:  # type: ignore[index]
            turns.append(room.driver.turn())
            if not turns[-1].progress.again and not turns[-1].progress.starts:
                raise RuntimeError("The scheduler is done, and what could start has not started.")
    return {
        "filled_s": round(filled_s, 1),
        "turns": len(turns),
        "lanes_touched": sum(t.progress.started.lanes_touched for t in turns),
        "burst_ms": round(sum(t.ms for t in turns), 2),
        "round_ms": measure.quantiles([t.ms for t in turns], 2),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=SIZES)
    parser.add_argument("-n", "--size", type=int, help="; ".join(f"{case}: {size:,}" for case, size in SIZES.items()))
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--finished", type=int, default=0, metavar="TASKS", help="history in the same tables")
    parser.add_argument("--snapshot", action="store_true", help="another session holds a snapshot open")
    parser.add_argument("--dsn", help="measure on this server, not on an embedded one")
    parser.add_argument("--tag", default="", help="kept with the results, e.g. what was changed")
    given = parser.parse_args()
    size = given.size or SIZES[given.case]
    if given.case == "lanes":
        shape = lanes_shape(given.turns)
    else:
        shape = mapped_shape(size, given.turns) if given.case == "mapped" else burst_shape()
    with serve(given.dsn) as server:
        url = fresh_database(server, "rounds")
        with open_connection(url, "scheduler", generic_plans=True) as scheduler, open_connection(url, "worker") as worker:
            room = Room(url, scheduler, worker, shape)
            conditions = {"finished": given.finished, "snapshot": given.snapshot}
            if given.case == "burst":
                figures = measure_burst(room, size, **conditions)
            else:
                figures = measure_rounds(room, given.case, size, turns=given.turns, **conditions)
    head = {"case": f"round_{given.case}_{size}", "tag": given.tag, "at": datetime.now(UTC).isoformat(timespec="seconds")}
    line = json.dumps({**head, "load": measure.load(), **conditions, **figures})
    print(line)
    RESULTS.mkdir(exist_ok=True)
    with open(RESULTS / "rounds.jsonl", "a") as results:
        print(line, file=results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
