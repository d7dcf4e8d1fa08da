"""What other selectors cost on the same backlog: python bench/rejected.py {linear|window|heads} [-n SIZE] [--rounds ROUNDS].

linear  all ready tasks in order, in pages, each taken unless a limit is full
window  ready tasks ranked within each limit by window functions, in one statement
heads   lanes as the scheduler has them, but none is ever parked: those that are blocked are looked at each time

The backlog is that of ``rounds.py lanes``. In each round five tasks end, the selector picks, five start, in one transaction that
writes only what has started and the use of limits: less than a scheduler has to, so the figures flatter.
"""

from __future__ import annotations

import argparse
import heapq
import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import measure
from rounds import EXITS, RESULTS, WARM_UP, Room, fill, lanes_shape
from server import fresh_database, open_connection, serve

from evenflow.store.db.rows import Conn

PAGE = 500  # tasks or lanes fetched at once, as LANES_PER_ROUND
BEFORE_ALL = {"run_rank": -(1 << 31), "rank": -(1 << 31), "run_after": "-infinity", "lane_id": 0, "task_index": 0, "map_index": -1}
STATEMENTS = Path(__file__).parent / "rejected"

Task = tuple[int, int, int]  # lane_id, task_index, map_index
Selector = Callable[[Conn], list[Task]]


@cache
def statement(name: str) -> bytes:
    return (STATEMENTS / f"{name}.sql").read_bytes()


def fetch(conn: Conn, name: str, params: dict[str, Any]) -> list[Any]:
    return conn.execute(statement(name), params, prepare=True).fetchall()


def linear(conn: Conn) -> list[Task]:
    """Greedy with skip. Reads to the end of the backlog, since nothing tells that nothing fits any more."""
    chosen: list[Task] = []
    free: dict[int, int] = {}
    after: dict[str, Any] = BEFORE_ALL
    while page := fetch(conn, "linear_page", {**after, "page": PAGE}):
        for *_, lane_id, task_index, map_index, weight, limits, rooms in page:
            for limit, room in zip(limits, rooms, strict=True):
                free.setdefault(limit, room)
            if free[limits[0]] >= weight and all(free[limit] >= 1 for limit in limits[1:]):
                free[limits[0]] -= weight
                for limit in limits[1:]:
                    free[limit] -= 1
                chosen.append((lane_id, task_index, map_index))
        after = dict(zip(BEFORE_ALL, page[-1][:6], strict=True))
    return chosen


def window(conn: Conn) -> list[Task]:
    return fetch(conn, "window", {"page": PAGE})


def heads(conn: Conn) -> list[Task]:
    """The selection round on limit classes that have room, without the memory of what is blocked."""
    limit_classes = {row[0]: row for row in fetch(conn, "heads_limit_classes", {})}
    free: dict[int, int] = {}
    chosen: list[Task] = []
    queue: list[tuple[Any, ...]] = []  # (order, limit class, the rest of its page)

    def expose(class_id: int, after: dict[str, Any], rest: list[Any]) -> None:
        rest = rest or fetch(conn, "heads_next", {**after, "class_id": class_id, "page": PAGE})[::-1]
        if rest:
            heapq.heappush(queue, (rest[-1][:4], class_id, rest))

    for class_id, pool, pool_room, executor, executor_room, _ in limit_classes.values():
        free.setdefault(pool, pool_room)
        free.setdefault(executor, executor_room)
        expose(class_id, BEFORE_ALL, [])
    while queue:
        order, class_id, rest = heapq.heappop(queue)
        _, pool, _, executor, _, weight = limit_classes[class_id]
        if free[pool] < weight or free[executor] < 1:
            continue
        *_, lane_id, ready, locals_, rooms = rest.pop()
        for limit, room in zip(locals_, rooms, strict=True):
            free.setdefault(limit, room)
        count = min(ready, free[pool] // weight, free[executor], *(free[limit] for limit in locals_))
        if count > 0:
            free[pool] -= count * weight
            for limit in (executor, *locals_):
                free[limit] -= count
            chosen += fetch(conn, "heads_tasks", {"lane_id": lane_id, "count": count})
        expose(class_id, {**BEFORE_ALL, **dict(zip(BEFORE_ALL, order, strict=False))}, rest)
    return chosen


SELECTORS: dict[str, Selector] = {"linear": linear, "window": window, "heads": heads}


def turn(conn: Conn, select: Selector) -> float:
    """One round; answers its milliseconds. Raises :class:`RuntimeError` unless as many start as end."""
    begin = time.perf_counter()
    with conn.transaction():
        conn.execute(statement("finish"), {"exits": EXITS}, prepare=True)
        chosen = select(conn)
        lanes, tasks, maps = map(list, zip(*chosen, strict=True))
        conn.execute(statement("start"), {"lanes": lanes, "tasks": tasks, "maps": maps}, prepare=True)
    if len(chosen) != EXITS:
        raise RuntimeError(f"{EXITS} tasks ended and {len(chosen)} started.")
    return (time.perf_counter() - begin) * 1e3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("selector", choices=SELECTORS)
    parser.add_argument("-n", "--size", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, help="300, fewer on a backlog above 1,000")
    parser.add_argument("--dsn", help="measure on this server, not on an embedded one")
    parser.add_argument("--tag", default="", help="kept with the results, e.g. what was changed")
    given = parser.parse_args()
    rounds = given.rounds or max(10, min(300, 300_000 // given.size))
    select = SELECTORS[given.selector]
    with serve(given.dsn) as server:
        url = fresh_database(server, "rejected")
        with open_connection(url, "scheduler", generic_plans=True) as scheduler, open_connection(url, "worker") as worker:
            room = Room(url, scheduler, worker, lanes_shape(rounds))
            fill(room, "lanes", given.size)
            worker.execute(statement("prepare"))
            room.age(0)
            for _ in range(WARM_UP):
                turn(scheduler, select)
            before = room.blocks()
            taken = [turn(scheduler, select) for _ in range(rounds)]
            after = room.blocks()
    case, at = f"rejected_{given.selector}_{given.size}", datetime.now(UTC).isoformat(timespec="seconds")
    figures = {
        "load": measure.load(),
        "turns": rounds,
        "round_ms": measure.quantiles(taken, 2),
        "buffers_per_start": None if before is None or after is None else round((after - before) / (rounds * EXITS), 1),
    }
    line = json.dumps({"case": case, "tag": given.tag, "at": at, **figures})
    print(line)
    RESULTS.mkdir(exist_ok=True)
    with open(RESULTS / "rejected.jsonl", "a") as results:
        print(line, file=results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
