"""Statements with bound parameters, and what of their rows becomes a result."""

from __future__ import annotations

from datetime import date, datetime
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
    assert rows_of(query(spark, "select :a as a", {"a": (1, 2)}), 1) == [{"a": [1, 2]}]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (2**63, r"a number of more than 64 bits.*Give it a Decimal"),
        ([1, -(2**63) - 1], "a number of more than 64 bits"),
        (Decimal("NaN"), "a decimal that is no number"),
        ("\ud800", "text that is not Unicode"),
        (datetime(1582, 10, 14), r"before 15 October 1582.*cast\(:x as timestamp\)"),
        (date(999, 12, 31), r"before the year 1000.*cast\(:x as date\)"),
    ],
)
def test_what_spark_would_bind_as_something_else_or_refuse_with_a_trace_is_said(spark: SparkSession, value: Any, said: str) -> None:
    """R-SP1: a moment of the year 1 was bound two days later, in silence."""
    with pytest.raises(SparkFailedForGood, match=f"The parameter x holds .*{said}"):
        query(spark, "select :x", {"x": value})
    least: dict[str, Any] = {"a": -(2**63), "b": datetime(1582, 10, 15), "c": date(1000, 1, 1)}
    assert rows_of(query(spark, "select :a as a, :b as b, :c as c", least), 1) == [least]


def test_names_of_parameters_are_texts(spark: SparkSession) -> None:
    with pytest.raises(SparkFailedForGood, match=r"The parameter 1 has a name that is an int.*Write it as a text"):
        query(spark, "select 1", {1: 2})  # type: ignore[dict-item]


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
    for nested in ("named_struct('x', 1, 'x', 2)", "array(named_struct('x', 1, 'x', 2))", "map(1, named_struct('x', 1, 'x', 2))"):
        with pytest.raises(SparkFailedForGood, match="several columns named x in s"):
            rows_of(query(spark, f"select {nested} as s"), 1)
    assert rows_of(query(spark, "select named_struct('x', 1, 'X', 2) as s"), 1) == [{"s": {"x": 1, "X": 2}}]
