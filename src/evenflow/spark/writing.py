"""Rows that replace what is in a place: a second write leaves the same rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from evenflow.errors import SparkFailedForGood
from evenflow.spark.queries import quoted, require_distinct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def overwrite(
    frame: DataFrame,
    *,
    path: str | None = None,
    table: str | None = None,
    partition_by: Sequence[str] = (),
    partition: Mapping[str, str] | None = None,
) -> int:
    """Writes the rows of ``frame`` to ``path`` as Parquet, or to ``table``, replacing what is there. Returns the number of rows.

    With ``partition_by`` they replace the partitions that they belong to, and other partitions stay. Without it they replace
    everything. An existing table keeps its columns and partitions, which must be those of ``frame``.

    With ``partition``, as in ``{"day": "2026-01-31"}``, they replace that partition, even if there are no rows: then it becomes
    empty. A row of another partition fails the write, and nothing is replaced. Raises :class:`SparkFailedForGood`.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    if (path is None) == (table is None):
        raise SparkFailedForGood("The rows go to one place. Say path= or table=.")
    if partition is not None:
        if partition_by:
            raise SparkFailedForGood("partition= names the columns, too. Leave partition_by= out.")
        frame, partition_by = _in_partition(frame, partition), tuple(partition)
    missing = [name for name in partition_by if name not in frame.columns]
    if missing:
        raise SparkFailedForGood(
            f"The rows have no column {', '.join(missing)} to partition by; they have: {', '.join(frame.columns)}."
        )
    require_distinct(frame.columns)
    seen = Observation()
    counted = frame.observe(seen, F.count(F.lit(1)).alias("rows"))
    if path is not None:
        _write_files(counted, path, partition_by)
    elif table is not None:
        _write_table(counted, table, partition_by)
    rows = int(seen.get["rows"])
    if partition is not None and rows == 0:  # a partition is only known by a row of it, so no rows replace nothing by themselves
        _empty(frame, path, table, partition)
    return rows


def _in_partition(frame: DataFrame, partition: Mapping[str, str]) -> DataFrame:
    """Returns the frame with these columns, the last ones, because those are partitions."""
    from pyspark.sql import functions as F

    if not partition or not all(isinstance(value, str) and value for value in partition.values()):
        raise SparkFailedForGood(f"partition must name columns and their values as texts, not {dict(partition)!r:.80}.")
    others = [frame[quoted(name)] for name in frame.columns if name not in partition]
    its = []
    for name, value in partition.items():
        if name not in frame.columns:
            its.append(F.lit(value).alias(name))
            continue
        column = frame[quoted(name)]
        said = F.coalesce(column.cast("string"), F.lit("nothing"))
        wrong = F.raise_error(F.concat(F.lit(f"The partition is {name}={value}, and a row has there: "), said))
        its.append(F.when(said == value, column).otherwise(wrong).alias(name))
    return frame.select(*others, *its)


def _empty(frame: DataFrame, path: str | None, table: str | None, partition: Mapping[str, str]) -> None:
    if path is not None:
        folder = "/".join([path.rstrip("/"), *(f"{name}={_UNSAFE.sub(_escaped, value)}" for name, value in partition.items())])
        frame.drop(*partition).limit(0).write.mode("overwrite").parquet(folder)
        return
    its = ", ".join(f"{quoted(name)} = {_literal(value)}" for name, value in partition.items())
    frame.sparkSession.sql(f"alter table {table} drop if exists partition ({its})")


_UNSAFE = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{[\]^]""")  # in the name of a folder: as Spark writes them


def _escaped(character: re.Match[str]) -> str:
    return f"%{ord(character[0]):02X}"


def _literal(value: str) -> str:
    """A text as Spark's SQL has it."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _write_files(frame: DataFrame, path: str, partition_by: Sequence[str]) -> None:
    writer = frame.write.mode("overwrite")
    if partition_by:
        writer = writer.option("partitionOverwriteMode", "dynamic").partitionBy(*partition_by)
    writer.parquet(path)


def _write_table(frame: DataFrame, table: str, partition_by: Sequence[str]) -> None:
    spark = frame.sparkSession
    if not spark.catalog.tableExists(table):
        # Empty, and filled then: files of a write that was killed, of no table, would stand in the way of the next one.
        writer = spark.createDataFrame([], frame.schema).write.mode("ignore")
        (writer.partitionBy(*partition_by) if partition_by else writer).saveAsTable(table)
    columns = spark.catalog.listColumns(table)
    names = [column.name for column in columns]
    if {name.lower() for name in names} != {name.lower() for name in frame.columns}:
        raise SparkFailedForGood(
            f"The table {table} has the columns {', '.join(names)}, and the rows have {', '.join(frame.columns)}. Name them alike, "
            "or alter the table first."
        )
    partitions = [column.name for column in columns if column.isPartition]
    if [name.lower() for name in partitions] != [name.lower() for name in partition_by]:
        by, given = ", ".join(partitions) or "nothing", ", ".join(partition_by) or "nothing"
        raise SparkFailedForGood(f"The table {table} is partitioned by {by}, not by {given}. Write partition_by={partitions}.")
    with _setting(spark, "spark.sql.sources.partitionOverwriteMode", "dynamic"):  # insertInto takes no option of the writer
        frame.select(*map(quoted, names)).write.mode("overwrite").insertInto(table)


@contextmanager
def _setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = str(spark.conf.get(name))
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before)
