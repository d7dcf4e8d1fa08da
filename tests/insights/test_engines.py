"""Every mart says the same, whichever engine makes it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from evenflow.errors import BadValue
from evenflow.insights.engines import DuckDb
from evenflow.insights.export import export
from evenflow.insights.spark_engine import Spark
from evenflow.insights.tables import MARTS
from tests.insights import tiny
from tests.insights.decided import decide
from tests.insights.seeding import History, seed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(1_500)  # two times 23 statements, on a machine that has others to do as well

DIGITS = 12  # engines interpolate between two numbers with different roundings of the last one


def made_alike(spark: SparkSession, lake: Path) -> dict[str, Counter[Any]]:
    """The rows of each mart by Spark. Fails where those by DuckDB are others."""
    engines = (DuckDb(), Spark(spark))
    for engine in engines:
        engine.make(lake)
    marts = {}
    for mart in MARTS:
        by_duckdb, by_spark = (Counter(map(_comparable, engine.rows(lake, mart.name))) for engine in engines)
        assert by_duckdb - by_spark == by_spark - by_duckdb == Counter(), mart.name
        marts[mart.name] = by_spark
    return marts


def _comparable(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(
        (name, float(f"{value:.{DIGITS}g}") if isinstance(value, (int, float)) else value) for name, value in sorted(row.items())
    )


@pytest.mark.spark
def test_a_small_history_has_equal_marts(spark: SparkSession, tmp_path: Path) -> None:
    """R-SP4: with a paused DAG, a retry, starts that were not told, and no violation."""
    tiny.write(tmp_path)
    marts = made_alike(spark, tmp_path)
    assert {name for name, rows in marts.items() if not rows} == {"anomalies", "violations"}


@pytest.mark.spark
def test_a_generated_history_with_violations_has_equal_marts(spark: SparkSession, tmp_path: Path) -> None:
    """R-SP4: of 40 DAGs; each kind of violation is told by both."""
    history = History(20_000, seed=3)
    seeds = seed(history, 12)
    history.write(tmp_path)
    marts = made_alike(spark, tmp_path)
    assert {name for name, rows in marts.items() if not rows} == set()
    kinds = {dict(row)["kind"] for row in marts["violations"]}
    assert all(kinds & seed.kinds for seed in seeds)


@pytest.mark.spark
def test_what_a_scheduler_decided_has_equal_marts(spark: SparkSession, db: psycopg.Connection, tmp_path: Path) -> None:
    """R-SP4: real history, as the export writes it."""
    decide(db)
    export(db, tmp_path)
    marts = made_alike(spark, tmp_path)
    assert marts["violations"] == Counter()
    assert marts["critical_paths"]


@pytest.mark.spark
def test_spark_says_where_there_is_no_history(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="evenflow insights export"):
        Spark(spark).make(tmp_path)
