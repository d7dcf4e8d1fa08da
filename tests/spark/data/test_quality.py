"""Expectations of data: one pass, three ways to go on, and what was seen is kept."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from evenflow.errors import BadArgument, ExpectationFailed
from evenflow.sdk.context import Context, current
from evenflow.spark import quality
from evenflow.spark.quality import between, check, drift_of, fresh, has_schema, holds, not_null, rows, unique

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.fixture
def pushed() -> Iterator[dict[str, Any]]:
    """The XComs of the task."""
    values: dict[str, Any] = {}
    token = current.set(Context(ti=SimpleNamespace(xcom_push=values.__setitem__)))
    yield values
    current.reset(token)


@pytest.fixture
def orders(spark: SparkSession) -> DataFrame:
    """Six: one without an id, one that is twice there, one that is too dear."""
    return spark.sql(
        "select * from values (1, 10.0, timestamp'2026-03-04 09:00:00+00:00'), (2, 20.0, null), (2, 20.0, null), "
        "(3, 9999.0, null), (null, 5.0, null), (5, null, null) as t (id, price, at)"
    )


def seen(pushed: dict[str, Any]) -> dict[str, tuple[bool, str]]:
    (told,) = pushed.values()
    return {each["expectation"]: (each["holds"], each["seen"]) for each in told["expectations"]}


def test_all_is_seen_in_one_pass_and_kept(orders: DataFrame, pushed: dict[str, Any]) -> None:
    """R-SP1: also what is only told; the frame goes on as it is."""
    expected = [
        rows(at_least=7, otherwise="warn"),
        rows(at_most=6),
        not_null("id", otherwise="warn"),
        unique("id", otherwise="warn"),
        unique("id", "price", otherwise="warn"),
        between("price", 0, 100, otherwise="warn"),
        holds("price > id", otherwise="warn"),
        fresh("at", timedelta(hours=4), now=NOW),
        fresh("at", timedelta(hours=2), now=NOW, otherwise="warn"),
        has_schema("id int, price decimal(5,1), at timestamp"),
    ]
    assert check(orders, *expected, name="orders").count() == 6
    assert pushed.keys() == {"quality orders"}
    assert (pushed["quality orders"]["rows"], pushed["quality orders"]["quarantined"]) == (6, 0)
    assert seen(pushed) == {
        "schema": (True, "as expected"),
        "rows at least 7": (False, "6 rows"),
        "rows between 1 and 6": (True, "6 rows"),
        "id is not null": (False, "1 of 6 rows do not"),
        "id unique": (False, "1 rows too many"),
        "id, price unique": (False, "1 rows too many"),
        "price between 0 and 100": (False, "1 of 6 rows do not"),
        "price > id": (True, "0 of 6 rows do not"),
        "at not older than 4:00:00": (True, "3:00:00 old"),
        "at not older than 2:00:00": (False, "3:00:00 old"),
    }


def test_one_pass_is_one_scan(spark: SparkSession, tmp_path: Path, pushed: dict[str, Any]) -> None:
    """Counted by the rows that go by."""
    gone_by = spark.sparkContext.accumulator(0)

    def counted(batches: Any) -> Any:
        for batch in batches:
            gone_by.add(batch.num_rows)
            yield batch

    frame = spark.range(100).mapInArrow(counted, "id long")
    check(frame, rows(), not_null("id"), unique("id"), between("id", 0, 99), holds("id >= 0"), has_schema("id bigint"))
    assert gone_by.value == 100


def test_what_fails_names_all_that_does(orders: DataFrame, pushed: dict[str, Any]) -> None:
    with pytest.raises(ExpectationFailed) as caught:
        check(orders, rows(at_least=10), not_null("id"), between("price", most=5, otherwise="warn"), name="orders")
    assert str(caught.value) == (
        "orders is not as expected: rows at least 10 (6 rows); id is not null (1 of 6 rows do not). All that was seen is in the "
        "task's XCom 'quality orders'."
    )
    assert len(seen(pushed)) == 3


def test_rows_are_put_aside_with_what_they_violate(
    spark: SparkSession, orders: DataFrame, tmp_path: Path, pushed: dict[str, Any]
) -> None:
    place = str(tmp_path / "aside")
    expected = [not_null("id", otherwise="quarantine"), between("price", most=100, otherwise="quarantine"), rows()]
    for _ in range(2):  # as often as it is tried they are there once
        good = check(orders, *expected, quarantine=place)
        assert sorted(row["id"] for row in good.collect()) == [1, 2, 2, 5]
        assert good.columns == orders.columns
        aside = {row["id"]: row["violated"] for row in spark.read.parquet(place).collect()}
        assert aside == {None: ["id is not null"], 3: ["price at most 100"]}
        assert pushed["quality data"]["quarantined"] == 2
    check(orders.where("id = 1"), *expected, quarantine=place)
    assert spark.read.parquet(place).count() == 0


def test_a_schema_that_has_drifted_is_said_before_columns_are_looked_for(orders: DataFrame, pushed: dict[str, Any]) -> None:
    with pytest.raises(ExpectationFailed, match=r"schema \(shop is missing; id is int and not string; price is new; at is new\)"):
        check(orders, has_schema("id string, shop string"), not_null("shop"))
    assert seen(pushed).keys() == {"schema"}


def test_drift() -> None:
    assert drift_of({"a": "int"}, {"b": "int", "a": "int"}, more=True) == (True, "as expected")
    assert drift_of({"a": "int"}, {"b": "int", "a": "int"}, more=False) == (False, "b is new")


def test_an_empty_frame(spark: SparkSession, pushed: dict[str, Any]) -> None:
    empty = spark.range(0).selectExpr("id", "cast(null as timestamp) as at")
    check(empty, rows(at_least=0), unique("id"), not_null("id"), fresh("at", timedelta(hours=1), otherwise="warn"))
    assert seen(pushed)["at not older than 1:00:00"] == (False, "no time")


def test_what_makes_no_sense_is_refused(spark: SparkSession, orders: DataFrame) -> None:
    with pytest.raises(BadArgument, match=r"'rows at least 1': otherwise= is one of fail, warn, not 'quarantine'"):
        rows(otherwise="quarantine")
    with pytest.raises(BadArgument, match="say where rows are put aside"):
        check(orders, not_null("id", otherwise="quarantine"))
    with pytest.raises(BadArgument, match=r"get a column 'violated'\. Rename that of the data"):
        check(orders.withColumnRenamed("price", "Violated"), not_null("id", otherwise="quarantine"), quarantine="/x")
    with pytest.raises(BadArgument, match="least value, the most"):
        between("id")
    with pytest.raises(BadArgument, match="needs a column"):
        quality.unique()
