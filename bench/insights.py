"""The history pipeline at a size: a made-up history (evenflow.insights.sample), and its marts, timed.

``insights --events N`` makes the marts of so many events; ``insights --day N`` of the events of so many tries. ``insights_proofs``
puts 50 violations into a history and counts those that are found, and what is told of a history without any.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measure import load

from evenflow.insights.engines import DuckDb
from evenflow.insights.sample import EVENTS_A_TRY, write_sample
from evenflow.insights.tables import Mart
from tests.insights.seeding import History, seed

CASE = "insights"
PROOFS = "insights_proofs"
EVENTS = 1_000_000
VIOLATIONS = 50
HISTORY_OF_PROOFS = 100_000  # events


def run(*, events: int | None, day: int | None) -> Iterator[dict[str, Any]]:
    count = day * EVENTS_A_TRY if day else events or EVENTS
    with tempfile.TemporaryDirectory(prefix="evenflow-insights-") as folder:
        lake = Path(folder)
        began = time.monotonic()
        made = write_sample(lake, count)
        sample_s = time.monotonic() - began
        parts = _make(DuckDb(), lake)
        violations = len(DuckDb().rows(lake, "violations"))
    yield {
        "ok": violations == 0,
        "events": made,
        "violations": violations,
        "sample_s": round(sample_s, 1),
        "load": load(),
        "total_s": round(sum(parts.values()), 1),
        "marts_s": parts,
    }


def run_proofs() -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="evenflow-insights-") as folder:
        lake, engine = Path(folder), DuckDb()
        history = History(HISTORY_OF_PROOFS, seed=3)
        history.write(lake)
        engine.make(lake)
        false_alarms = len(engine.rows(lake, "violations"))
        seeds = seed(history, VIOLATIONS)
        history.write(lake)
        engine.make(lake)
        told = engine.rows(lake, "violations")
    found = sum(one.is_found(told) for one in seeds)
    yield {
        "ok": found == VIOLATIONS and not false_alarms,
        "found": found,
        "false_alarms": false_alarms,
        "events": HISTORY_OF_PROOFS,
        "load": load(),
    }


def _make(engine: DuckDb, lake: Path) -> dict[str, float]:
    """Seconds of each mart."""
    spent: dict[str, float] = {}
    last = time.monotonic()

    def tell(mart: Mart) -> None:
        nonlocal last
        now = time.monotonic()
        spent[mart.name], last = round(now - last, 2), now

    engine.make(lake, tell)
    return spent
