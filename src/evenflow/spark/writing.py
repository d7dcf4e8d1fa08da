"""Rows that replace what is in a place: written twice they are there once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from evenflow.errors import SparkFailedForGood
from evenflow.spark.queries import quoted, require_distinct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def overwrite(frame: DataFrame, *, path: str | None = None, table: str | None = None, partition_by: Sequence[str] = ()) -> int:
    """Writes the rows of ``frame`` to ``path`` as Parquet, or to ``table``, in place of what is there. Answers their number.

    With ``partition_by`` they replace what is in the partitions that they have, and other partitions stay. Without it they replace
    everything. A table that is there keeps its columns and partitions, which must be those of ``frame``.
    Raises :class:`SparkFailedForGood`.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    if (path is None) == (table is None):
        raise SparkFailedForGood("The rows go to one place. Say path= or table=.")
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
    return int(seen.get["rows"])


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
