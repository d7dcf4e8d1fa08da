"""The history pipeline at a size: a made-up history (evenflow.insights.sample), and its marts by DuckDB and by Spark, timed.

``insights --events N`` makes the marts of about so many events; ``insights --day N`` of the events of so many tries. A long
history is one of some hours, again and again, each time days later: to make up all of it would take longer than its marts. The
start of Spark's session is not in ``total_s``; ``cpu_s`` is what the engine had of the processors, its JVM and all.
``insights_proofs`` puts 50 violations into a history and counts those that are found, and what is told of a history without any.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from measure import load

from evenflow.insights.engines import DuckDb
from evenflow.insights.sample import EVENTS_A_TRY, write_sample
from evenflow.insights.spark_engine import Spark
from evenflow.insights.tables import DAY_OF, Mart
from evenflow.sdk.secrets.connections import Connection
from evenflow.spark.session import session_for
from tests.insights.seeding import History, seed

CASE = "insights"
PROOFS = "insights_proofs"
EVENTS = 1_000_000
MADE_UP = 500_000  # events, of most of a day
DAY_MS = 86_400_000
RUN_KEY_BITS = 20  # of a run's key, below the milliseconds of its creation
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
        made = write_history(lake, count)
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


def write_history(lake: Path, events: int) -> int:
    """Answers how many there are."""
    made = write_sample(lake, min(events, MADE_UP), ends=events > MADE_UP)
    times = max(1, round(events / made))
    if times > 1:
        _repeat(lake, times)
    return made * times


def _repeat(lake: Path, times: int) -> None:
    """What a sample has of days, so many times in all: with later times, and runs, transactions and dispatches of their own."""
    files = [file for table in DAY_OF for file in sorted((lake / "bronze" / table).glob("day=*/sample.parquet"))]
    read = {file: pq.ParquetFile(file).read() for file in files}
    days = len({file.parent.name for file in files})
    most = {
        name: max(pc.max(table[name]).as_py() for table in read.values() if name in table.column_names)
        for name in ("xact", "epoch")
    }
    for days_later, number in ((days * number, number) for number in range(1, times)):
        more = {name: number * largest for name, largest in most.items()} | {"run_key": days_later * DAY_MS << RUN_KEY_BITS}
        for file, table in read.items():
            columns = [_later(table[field.name], field, days_later, more.get(field.name, 0)) for field in table.schema]
            day = date.fromisoformat(file.parent.name.removeprefix("day=")) + timedelta(days=days_later)
            target = file.parent.with_name(f"day={day}") / file.name
            target.parent.mkdir(exist_ok=True)
            pq.write_table(pa.Table.from_arrays(columns, schema=table.schema), target, compression="zstd")


def _later(column: pa.ChunkedArray, field: pa.Field, days: int, more: int) -> pa.ChunkedArray:
    if pa.types.is_timestamp(field.type):
        return pc.add(column, pa.scalar(timedelta(days=days), pa.duration("us")))
    if not more:
        return column
    return pc.if_else(pc.equal(column, 0), column, pc.add(column, more))  # 0: of no dispatch


def _timed(engine: DuckDb | Spark, lake: Path, bar_s: float) -> dict[str, Any]:
    before = _cpu_s()
    parts = _make(engine, lake)
    cpu_s = round(_cpu_s() - before, 1)
    total_s, violations = round(sum(parts.values()), 1), len(engine.rows(lake, "violations"))
    ok = violations == 0 and total_s <= bar_s
    figures = {"total_s": total_s, "bar_s": bar_s, "cpu_s": cpu_s, "marts_s": parts}
    return {"ok": ok, "violations": violations, "load": load(), **figures}


def _cpu_s() -> float:
    """Of this process and those that it has started."""
    own = psutil.Process()
    return float(sum(times.user + times.system for times in (each.cpu_times() for each in (own, *own.children(recursive=True)))))


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
