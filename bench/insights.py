"""The history pipeline at a size: a made-up history (evenflow.insights.sample), and its marts by DuckDB and by Spark, timed.

``insights --events N`` makes the marts of so many events; ``insights --day N`` of the events of so many tries. The start of Spark's
session is not in ``total_s``. ``insights_proofs``
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
from evenflow.insights.spark_engine import Spark
from evenflow.insights.tables import Mart
from evenflow.sdk.secrets.connections import Connection
from evenflow.spark.session import session_for
from tests.insights.seeding import History, seed

CASE = "insights"
PROOFS = "insights_proofs"
EVENTS = 1_000_000
EVENTS_S, DAY_S = 120.0, 30.0  # the bars, of 10,000,000 events and of a day of 100,000 tries
LOCAL = Connection.parse("spark_default", "spark-local://?driver_memory=4g")
VIOLATIONS = 50
HISTORY_OF_PROOFS = 100_000  # events


def run(*, events: int | None, day: int | None) -> Iterator[dict[str, Any]]:
    count = day * EVENTS_A_TRY if day else events or EVENTS
    bar_s = DAY_S if day else EVENTS_S
    with tempfile.TemporaryDirectory(prefix="evenflow-insights-") as folder:
        lake = Path(folder)
        began = time.monotonic()
        made = write_sample(lake, count)
        sample_s = time.monotonic() - began
        given = {"events": made, "sample_s": round(sample_s, 1)}
        yield {"engine": "duckdb", **given, **_timed(DuckDb(), lake, bar_s)}
        began = time.monotonic()
        with session_for(LOCAL, app_name=CASE, conf={}, progress=lambda *_: None) as spark:
            given["session_s"] = round(time.monotonic() - began, 1)
            yield {"engine": "spark", **given, **_timed(Spark(spark), lake, bar_s)}


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


def _timed(engine: DuckDb | Spark, lake: Path, bar_s: float) -> dict[str, Any]:
    parts = _make(engine, lake)
    total_s, violations = round(sum(parts.values()), 1), len(engine.rows(lake, "violations"))
    ok = violations == 0 and total_s <= bar_s
    return {"ok": ok, "violations": violations, "load": load(), "total_s": total_s, "bar_s": bar_s, "marts_s": parts}


def _make(engine: DuckDb | Spark, lake: Path) -> dict[str, float]:
    """Seconds of each mart."""
    spent: dict[str, float] = {}
    last = time.monotonic()

    def tell(mart: Mart) -> None:
        nonlocal last
        now = time.monotonic()
        spent[mart.name], last = round(now - last, 2), now

    engine.make(lake, tell)
    return spent
