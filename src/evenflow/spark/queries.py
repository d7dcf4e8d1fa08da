"""Statements of Spark SQL, with bound parameters, and their rows as a result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from types import NoneType
from typing import TYPE_CHECKING, Any

from evenflow.errors import SparkFailedForGood

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LITERALS = (str, bool, int, float, Decimal, bytes, date, timedelta, NoneType)  # a datetime is a date


def query(spark: SparkSession, text: str, parameters: Mapping[str, Any] | Sequence[Any] | None = None) -> DataFrame:
    """``parameters`` are bound by Spark: none becomes part of the text. Raises :class:`SparkFailedForGood` for several statements,
    and for a parameter that is not given.
    """
    try:
        return _query(spark, text, parameters)
    except Exception as error:
        said = str(error)
        if "[PARSE_SYNTAX_ERROR]" in said and ";" in text.rstrip("; \n\t"):
            raise SparkFailedForGood(
                f"{_first_line(said)} A task has one statement: write each of several as a task of its own, or call spark.sql for "
                "each in a @task.spark."
            ) from error
        if "[UNBOUND_SQL_PARAMETER]" in said:
            given = ", ".join(map(str, parameters)) if isinstance(parameters, Mapping) else f"{len(parameters or ())} without names"
            raise SparkFailedForGood(f"{_first_line(said)} parameters= has: {given or 'none'}.") from error
        raise


def _first_line(said: str) -> str:
    return said.strip().partition("\n")[0].rstrip(".") + "."


def _query(spark: SparkSession, text: str, parameters: Mapping[str, Any] | Sequence[Any] | None) -> DataFrame:
    if not parameters:
        return spark.sql(text)
    named = parameters if isinstance(parameters, Mapping) else dict(enumerate(parameters, 1))
    for name, value in named.items():
        _require_literal(name, value)
    return spark.sql(text, args=dict(parameters) if isinstance(parameters, Mapping) else list(parameters))


def _require_literal(name: str | int, value: Any) -> None:
    for each in value if isinstance(value, (list, tuple)) else [value]:
        if not isinstance(each, _LITERALS):
            raise SparkFailedForGood(
                f"The parameter {name} holds a {type(each).__name__}, which Spark cannot bind. Give it text, numbers, dates, "
                "bytes, None, or a list of these."
            )


def rows_of(frame: DataFrame, most: int) -> list[dict[str, Any]] | None:
    """None of a statement that has no rows, as ``CREATE TABLE``. Raises :class:`SparkFailedForGood` for more than ``most``."""
    if not frame.columns:
        return None
    require_distinct(frame.columns)
    rows = frame.limit(most + 1).collect()
    if len(rows) > most:
        raise SparkFailedForGood(
            f"The query has more than {most:,} rows, and these are its result. Write them to a place (path= or table=), ask for "
            "fewer, or raise max_rows."
        )
    return [row.asDict(recursive=True) for row in rows]


def require_distinct(columns: Sequence[str]) -> None:
    """Raises :class:`SparkFailedForGood`: of two columns with one name a dict or a file keeps only one."""
    twice = sorted(name for name, count in Counter(map(str.lower, columns)).items() if count > 1)
    if twice:
        raise SparkFailedForGood(f"The result has several columns named {', '.join(twice)}. Name each another way: ... AS name.")


def quoted(column: str) -> str:
    """A name as a part of SQL or of a path to a column, whatever characters it has."""
    return "`" + column.replace("`", "``") + "`"
