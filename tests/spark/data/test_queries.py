"""Statements with bound parameters, and what of their rows becomes a result."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from evenflow.errors import SparkFailedForGood
from evenflow.spark.queries import query, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_parameter_is_a_value_whatever_it_says(spark: SparkSession) -> None:
    """R-SP1: text that would end a string and go on as SQL stays text."""
    given: dict[str, Any] = {"a": "x' or 1=1 --", "b": 2, "c": [1, 2], "d": date(2026, 1, 1), "e": Decimal("1.5"), "f": None}
    frame = query(spark, "select :a as a, :b + 1 as b, array_contains(:c, 2) as c, :d as d, :e as e, :f as f;\n", given)
    assert rows_of(frame, 1) == [{**given, "b": 3, "c": True}]
    assert rows_of(query(spark, "select ? as a, ? + 1 as n", ["; drop table t", 2]), 1) == [{"a": "; drop table t", "n": 3}]
    assert rows_of(query(spark, "begin declare x int default :x; set x = x + 5; select x; end", {"x": 3}), 1) == [{"x": 8}]


def test_what_cannot_be_bound_is_named(spark: SparkSession) -> None:
    with pytest.raises(SparkFailedForGood, match="The parameter ids holds a dict, which Spark cannot bind"):
        query(spark, "select :ids", {"ids": [{}]})
    with pytest.raises(SparkFailedForGood, match="The parameter 2 holds a object"):
        query(spark, "select ?, ?", [1, object()])


def test_rows_are_dicts_all_the_way_down_and_no_more_than_was_said(spark: SparkSession) -> None:
    text = "select id, named_struct('a', 1, 'b', array(named_struct('c', id))) as s, map('k', 1) as m from range(3)"
    assert rows_of(query(spark, text), 3) == [{"id": each, "s": {"a": 1, "b": [{"c": each}]}, "m": {"k": 1}} for each in range(3)]
    with pytest.raises(SparkFailedForGood, match=r"more than 2 rows.*path= or table="):
        rows_of(query(spark, text), 2)


def test_a_statement_without_rows_has_no_result(spark: SparkSession) -> None:
    assert rows_of(query(spark, "create temporary view of_one as select 1 as a"), 1) is None
    assert rows_of(query(spark, "select * from of_one where a > 1"), 1) == []


def test_no_column_is_lost_to_another_of_its_name(spark: SparkSession) -> None:
    with pytest.raises(SparkFailedForGood, match="several columns named id"):
        rows_of(query(spark, "select a.id, b.id as ID from range(1) a join range(1) b"), 1)
