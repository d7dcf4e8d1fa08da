"""A history that is small enough to be worked out by hand, and what follows from it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from evenflow.insights.lake import write_file

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
S = 1_000_000  # microseconds


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def task(version: int, dag: str, index: int, name: str, pool: str = "default_pool") -> tuple[Any, ...]:
    return (version, dag, index, name, "python", "ann", pool, 1, "worker", None, None, 16, 16)


# seconds, run, task, epoch, try, event, state, detail
EVENTS = (
    (1, 1, 0, 11, 1, "grant", "queued", None),  # a waits 2 s for a worker
    (1, 1, 1, 0, 0, "ready", "scheduled", None),
    (3, 1, 0, 11, 1, "start", "running", None),
    (10, 1, 0, 11, 1, "succeed", "success", None),
    (10, 1, 1, 12, 1, "grant", "queued", None),  # b has waited 9 s for the one slot of its pool
    (16, 1, 1, 12, 1, "succeed", "success", '{"ran_s": 5.0}'),  # its start was not told: 1 s for a worker, 5 s of running
    (16, 1, 2, 13, 1, "grant", "queued", None),  # c could begin when b had ended
    (16, 1, 2, 13, 1, "start", "running", None),
    (20, 1, 2, 13, 1, "retry", "up_for_retry", '{"reason": "no"}'),
    (25, 1, 2, 14, 2, "grant", "queued", None),
    (25, 1, 2, 14, 2, "start", "running", None),
    (27, 1, 2, 14, 2, "succeed", "success", None),
    (1, 2, 0, 0, 0, "ready", "scheduled", None),
    (31, 2, 0, 21, 1, "grant", "queued", None),  # its DAG was paused until 30
    (31, 2, 0, 21, 1, "start", "running", None),
    (32, 2, 0, 21, 1, "succeed", "success", None),
)

WAITS = {  # by DAG, cause and limit, in seconds
    ("d", "no worker", ""): 3,
    ("d", "pool", "narrow"): 9,
    ("d", "retry delay", ""): 5,
    ("d", "running", ""): 18,
    ("d", "upstream", ""): 15,
    ("e", "paused", ""): 29,
    ("e", "scheduling", ""): 1,
    ("e", "running", ""): 1,
}


def write(lake: Path) -> None:
    events = [
        (run, index, -1, at(s), 100 + s, epoch, number, event, state, detail)
        for s, run, index, epoch, number, event, state, detail in EVENTS
    ]
    tables: dict[str, list[tuple[Any, ...]]] = {
        "task_events": events,
        "run_events": [
            (1, at(1), 101, "start", "running", "scheduler", None),
            (2, at(1), 101, "start", "running", "scheduler", None),
            (1, at(27), 127, "succeed", "success", "scheduler", None),
            (2, at(32), 132, "succeed", "success", "scheduler", None),
        ],
        "runs": [(1, "d", "r1", 7, "manual", at(0), at(0)), (2, "e", "r2", 8, "manual", at(0), at(0))],
        "tasks": [task(7, "d", 0, "a", "narrow"), task(7, "d", 1, "b", "narrow"), task(7, "d", 2, "c"), task(8, "e", 0, "x")],
        "edges": [(7, 2, 0), (7, 2, 1)],
        "limits": [
            ("pool", "narrow", at(100), 1, False),
            ("pool", "default_pool", at(100), 128, False),
            ("executor", "worker", at(100), 1000, False),
        ],
        "spark_applications": [
            (1, 2, -1, at(20), 120, 13, 1, "app-1", 4, 3 * S, 8 * S, S, 100, 10, 50, 0),
            (1, 2, -1, at(27), 127, 14, 2, "app-2", 4, 2 * S, 6 * S, 0, 100, 10, 50, 7),
        ],
        "pauses": [("e", at(0), True), ("e", at(30), False)],
    }
    for table, rows in tables.items():
        write_file(lake / "bronze" / table / "tiny.parquet", table, [rows])
