"""A backfill over the partitions of an asset, on a real Spark: run twice, and killed in the middle of a write (R-SP1)."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.running import RunningEvenflow, evenflow_json, running_evenflow
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.spark, pytest.mark.timeout(1_500)]  # six sessions of Spark, one after the other

ROWS = 400
KILLED = "2011-01-01"
DAG_FILE = """
import os, time
from evenflow import DAG, Asset, CronDataIntervalTimetable, task

HERE = {home!r}
orders = Asset("orders", partitions="day")

def halting(batches):
    for batch in batches:
        yield batch
    with open(HERE + "/halted", "a"):
        pass
    while not os.path.exists(HERE + "/go"):
        time.sleep(0.05)

with DAG("yearly", schedule=CronDataIntervalTimetable("0 0 1 1 *"), is_paused_upon_creation=False):

    @task.spark(outlets=[orders], retries=2, retry_delay=0)
    def write(ds, *, spark):
        from evenflow.spark.writing import overwrite

        rows = spark.range(0, {rows}, 1, 2)
        if ds == {killed!r}:
            with open(HERE + "/pids", "a") as file:
                print(os.getpid(), file=file)
            rows = rows.mapInPandas(halting, "id long")
        return overwrite(rows, path=HERE + "/orders", partition={{"day": ds}})

    write()
"""
YEARS = ("--from", "2010-01-01", "--to", "2012-12-31")


@pytest.fixture
def system() -> Iterator[RunningEvenflow]:
    with running_evenflow(EVENFLOW_CONN_SPARK_DEFAULT="spark-local://?cores=2") as running:
        text = DAG_FILE.format(home=str(running.home), rows=ROWS, killed=KILLED)
        (running.dags / "yearly.py").write_text(text)
        wait_until(lambda: evenflow_json(running.home, "dags", "list")["dags"], lambda: running.log)
        yield running


def backfill(system: RunningEvenflow, *more: str, dates: tuple[str, ...] = YEARS) -> int:
    command = ("backfill", "create", "yearly", *dates, "--partitions-of", "orders", *more)
    number: int = evenflow_json(system.home, *command)["backfill_id"]
    return number


def ended(system: RunningEvenflow, number: int) -> dict[str, Any]:
    def found() -> Any:
        shown = evenflow_json(system.home, "backfill", "show", str(number))
        return shown if shown["backfill"]["ended_at"] else None

    shown: dict[str, Any] = wait_until(found, lambda: system.log, within_s=400)
    return shown


def rows(system: RunningEvenflow) -> dict[str, tuple[int, int]]:
    """By day, how many rows there are and how many of them differ, as somebody sees it who is not Spark."""
    files = Path(system.home, "orders", "*", "*.parquet")
    query = f"select day, count(*), count(distinct id) from read_parquet('{files}', hive_partitioning=1) group by 1"
    found = duckdb.sql(query).fetchall()
    return {str(day): (count, distinct) for day, count, distinct in found if str(day)[:4] in ("2010", "2011", "2012")}


def missing(system: RunningEvenflow) -> set[str]:
    listed = evenflow_json(system.home, "assets", "partitions", "orders", *YEARS, "--missing", "--limit", "1000")["partitions"]
    return {each["partition"] for each in listed} & {"2010-01-01", "2011-01-01", "2012-01-01"}


def test_a_backfill_that_is_killed_in_a_write_and_run_twice_leaves_each_row_once(system: RunningEvenflow) -> None:
    """R-SP1, R-SP6."""
    halted, pids = Path(system.home, "halted"), Path(system.home, "pids")
    first = backfill(system, "--max-active-runs", "1")
    wait_until(halted.exists, lambda: system.log, within_s=300)
    assert missing(system) == {"2011-01-01", "2012-01-01"}
    assert set(rows(system)) == {"2010-01-01"}, "nobody sees a part of what is being written"
    os.kill(int(pids.read_text().split()[0]), signal.SIGKILL)
    Path(system.home, "go").touch()
    shown = ended(system, first)
    assert [run["state"] for run in shown["runs"]] == ["success"] * 3
    assert len(pids.read_text().split()) == 2
    assert list(Path(system.home, "orders").glob(".spark-staging-*")) == [], "the next try has deleted what the killed one left"
    once = {f"{year}-01-01": (ROWS, ROWS) for year in (2010, 2011, 2012)}
    assert rows(system) == once
    assert missing(system) == set()

    passed = ended(system, backfill(system))
    assert all(run["passed_over"].startswith("is there since") for run in passed["runs"])
    ended(system, backfill(system, "--reprocess", "completed", dates=("--from", KILLED, "--to", KILLED)))
    assert len(pids.read_text().split()) == 3, "the day was written again"
    assert rows(system) == once
