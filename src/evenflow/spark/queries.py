"""Statements of Spark SQL, with bound parameters, and their rows as a result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from types import NoneType
from typing import TYPE_CHECKING, Any

from evenflow.errors import SparkFailedForGood

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LITERALS = (str, bool, int, float, Decimal, bytes, date, timedelta, NoneType)  # a datetime is a date
_GREGORIAN = date(1582, 10, 15)  # pyspark gives earlier moments to Java by another calendar
_FOUR_DIGITS = 1000  # pyspark writes earlier years with fewer, which Java does not read


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
    if isinstance(parameters, Mapping):
        return spark.sql(text, args={_text_of(name): _bindable(name, value) for name, value in parameters.items()})
    return spark.sql(text, args=[_bindable(place, value) for place, value in enumerate(parameters, 1)])


def _text_of(name: Any) -> str:
    if not isinstance(name, str):
        raise SparkFailedForGood(f"The parameter {name!r:.80} has a name that is an {type(name).__name__}. Write it as a text.")
    return name


def _bindable(name: str | int, value: Any) -> Any:
    """Raises :class:`SparkFailedForGood` for a value that Spark would refuse with a trace, or take for another one."""
    several = isinstance(value, (list, tuple))
    for each in value if several else [value]:
        if problem := _problem_of(name, each):
            raise SparkFailedForGood(f"The parameter {name} holds {problem}")
    return list(value) if several else value


def _problem_of(name: str | int, value: Any) -> str | None:
    match value:
        case int() if not -(2**63) <= value < 2**63:
            return "a number of more than 64 bits, which Spark cannot bind. Give it a Decimal."
        case Decimal() if not value.is_finite():
            return "a decimal that is no number, and Spark has none such. Give it a float, or None."
        case str() if not _is_unicode(value):
            return "text that is not Unicode, with a half of a pair of characters. Give it bytes, or text that was decoded whole."
        case datetime() if value.date() < _GREGORIAN:
            return f"a moment before 15 October 1582, which Spark takes for another one. Give it text, {_cast(name, 'timestamp')}."
        case date() if value.year < _FOUR_DIGITS:
            return f"a date before the year 1000, which Spark cannot bind. Give it text, {_cast(name, 'date')}."
        case _ if not isinstance(value, _LITERALS):
            return (
                f"a {type(value).__name__}, which Spark cannot bind. Give it text, numbers, dates, bytes, None, or a list of these."
            )
    return None


def _cast(name: str | int, kind: str) -> str:
    return f"and write cast({f':{name}' if isinstance(name, str) else '?'} as {kind})"


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def rows_of(frame: DataFrame, most: int) -> list[dict[str, Any]] | None:
    """None of a statement that has no rows, as ``CREATE TABLE``. Raises :class:`SparkFailedForGood` for more than ``most``."""
    if not frame.columns:
        return None
    require_distinct(frame.columns)
    for field in frame.schema.fields:
        _require_distinct_inside(field.name, field.dataType.jsonValue())
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


def _require_distinct_inside(column: str, kind: Any) -> None:
    """Of structs, also in arrays and maps: a dict tells upper case from lower case."""
    if not isinstance(kind, dict):
        return
    fields = kind.get("fields", ())
    twice = sorted(name for name, count in Counter(field["name"] for field in fields).items() if count > 1)
    if twice:
        raise SparkFailedForGood(f"The result has several columns named {', '.join(twice)} in {column}. Name each another way.")
    for inside in (*(field["type"] for field in fields), *(kind.get(name) for name in ("elementType", "keyType", "valueType"))):
        _require_distinct_inside(column, inside)


def quoted(column: str) -> str:
    """A name as a part of SQL or of a path to a column, whatever characters it has."""
    return "`" + column.replace("`", "``") + "`"
