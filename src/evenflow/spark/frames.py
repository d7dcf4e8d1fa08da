"""DataFrames as results: files that stay invisible until the try that wrote them has succeeded.

A try writes to a folder of its own, whose name is never used again. Readers learn that name only when the result of the try is
stored, which is one row of the database: so a reader sees all of it or nothing, whether or not the object storage can rename. The
API deletes the files of tries without a stored result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from evenflow.errors import SparkFailedForGood
from evenflow.sdk.operators.spark_frame import SparkFrame
from evenflow.spark.queries import require_distinct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def kept(result: Any, ask: Callable[[], Mapping[str, str]]) -> Any:
    """``result``, or what stands for it if it is a DataFrame. ``ask`` gives a folder of its own: ``url`` and ``name``."""
    if _is_frame(result):
        return write(result, **ask())
    _refuse_inside(result, "The result")
    return result


def _is_frame(value: Any) -> bool:
    return any(kind.__module__ == "pyspark.sql.dataframe" for kind in type(value).__mro__)  # without an import for all others


def _refuse_inside(value: Any, where: str) -> None:
    """A row of the database is the commit of one folder. Raises :class:`SparkFailedForGood` for a DataFrame inside of something."""
    match value:
        case dict():
            items = [(f"{where}, item {key!r:.80}", item) for key, item in value.items()]
        case list() | tuple() | set() | frozenset():
            items = [(f"{where}, item {place}", item) for place, item in enumerate(value)]
        case _:
            return
    for name, item in items:
        if _is_frame(item):
            raise SparkFailedForGood(
                f"{name} is a DataFrame, and a task keeps one that is its whole result. Return it alone; several are several tasks."
            )
        _refuse_inside(item, name)


def read_all(spark: SparkSession, value: Any) -> Any:
    """``value`` with each :class:`SparkFrame` in it, also inside lists, tuples and dicts, read as a DataFrame."""
    match value:
        case SparkFrame():
            return read(spark, value)
        case dict():
            return {key: read_all(spark, item) for key, item in value.items()}
        case list() | tuple() if not hasattr(value, "_fields"):
            return type(value)(read_all(spark, item) for item in value)
        case _:
            return value


def make_view(spark: SparkSession, name: str, frame: Any) -> None:
    """Makes a view, so that SQL can name it. Raises :class:`SparkFailedForGood` if ``frame`` is not a DataFrame."""
    if not isinstance(frame, SparkFrame):
        raise SparkFailedForGood(f"The view {name!r} must be a DataFrame that another task has as its result, not {frame!r:.80}.")
    read(spark, frame).createOrReplaceTempView(name)


def write(frame: DataFrame, url: str, name: str) -> SparkFrame:
    """Raises :class:`SparkFailedForGood` if others cannot read what was written."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    if not frame.columns:
        raise SparkFailedForGood(
            "The result has no columns, so it is not kept as a DataFrame. A statement without rows has no result: leave "
            "result='frame' out."
        )
    require_distinct(frame.columns)
    _require_shared(url, name)
    seen = Observation()
    path = for_spark(f"{url.rstrip('/')}/{name}")
    frame.observe(seen, F.count(F.lit(1)).alias("rows")).write.mode("append").parquet(path)
    rows = int(seen.get["rows"])
    found = frame.sparkSession.read.schema(StructType()).parquet(path)  # no column: a check makes no lineage
    if (there := found.count()) != rows:
        raise SparkFailedForGood(
            f"{rows:,} rows were written to {path}, and {there:,} are there: executors on other hosts write to folders "
            "of their own. Set EVENFLOW_XCOM_URL to storage that all hosts share, such as s3://."
        )
    return SparkFrame(url=url, name=name, schema=frame.schema.json(), rows=rows, files=len(found.inputFiles()))


def read(spark: SparkSession, frame: SparkFrame) -> DataFrame:
    """Reads with the stored schema. Raises :class:`SparkFailedForGood` when the files are not those that were written."""
    from pyspark.sql.types import StructType

    path = for_spark(frame.path)
    stored = StructType.fromJson(json.loads(frame.schema))
    try:
        found = spark.read.parquet(path)
    except Exception as error:
        if not any(word in str(error) for word in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")):
            raise
        raise SparkFailedForGood(
            f"The files of {frame!r} are not there. They go with the run that made them, or when its task is cleared; and they "
            "must be where this Spark sees them: set EVENFLOW_XCOM_URL to storage that all hosts share."
        ) from None
    files = len(found.inputFiles())
    if files != frame.files:
        raise SparkFailedForGood(
            f"{frame!r} was written as {frame.files:,} files, and {files:,} are there. Clear the task that made it."
        )
    if _types(json.loads(found.schema.json())) != _types(json.loads(frame.schema)):
        raise SparkFailedForGood(
            f"The files of {frame!r} have another schema by now: {found.schema.simpleString()}. Clear the task that made it."
        )
    return spark.read.schema(stored).parquet(path)


def for_spark(url: str) -> str:
    """As Hadoop names what fsspec names."""
    return re.sub(r"^s3://", "s3a://", url)


def _require_shared(url: str, name: str) -> None:
    """The API has made the folder where the place is a local one."""
    if urlsplit(url).scheme not in ("", "file"):
        return
    folder = Path(unquote(urlsplit(url).path), name)
    if not folder.is_dir():
        raise SparkFailedForGood(
            f"A DataFrame is a result by files in {url}, and that folder of the API is not on this host. Set EVENFLOW_XCOM_URL to "
            "storage that all hosts share, such as s3://."
        )


def _types(schema: Any) -> Any:
    """Without what may be null: files do not say it."""
    if isinstance(schema, dict):
        return {key: _types(value) for key, value in schema.items() if key not in _NULLS}
    return [_types(item) for item in schema] if isinstance(schema, list) else schema


_NULLS = ("nullable", "containsNull", "valueContainsNull")
