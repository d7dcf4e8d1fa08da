"""Rows that replace what is in a place: a second write leaves the same rows.

Spark collects the files of partitions in a folder of the write, ``.spark-staging-ID``, which a killed one leaves behind. A mark in
it says whose it is: of which task instance, and of which process. So the next write to the same place deletes folders whose writer
is surely dead. On a Spark Connect server the writer is the server, which lives on, so nothing is marked and deleted there.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from evenflow.errors import NoContext, SparkFailedForGood
from evenflow.sdk.context import get_current_context
from evenflow.spark import driver
from evenflow.spark.limits import MOST_STAGED, STAGED_LOOK
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
        if not partition_by:
            _require_other_files(frame, path)
        with _leaving_nothing(frame.sparkSession, path) if partition_by else nullcontext():
            _write_files(counted, path, partition_by)
    elif table is not None:
        _write_table(counted, table, partition_by)
    rows = int(seen.get["rows"])
    if partition is not None and rows == 0:  # a partition is only known by a row of it, so no rows replace nothing by themselves
        _empty(frame, path, table, partition)
    return rows


def _require_other_files(frame: DataFrame, path: str) -> None:
    """Spark deletes what is at ``path`` before it reads the rows. Raises :class:`SparkFailedForGood` if they are from there."""
    read = set(frame.inputFiles())
    if not read:
        return
    try:
        there = frame.sparkSession.read.option("recursiveFileLookup", "true").text(_no_pattern(path)).inputFiles()
    except Exception as error:
        if "PATH_NOT_FOUND" not in str(error):
            raise
        return
    if own := sorted(read & set(there)):
        raise SparkFailedForGood(
            f"The rows are read from {path}, which they are to replace: Spark would delete {own[0]} before it reads it. "
            "Write them to another path, or by partition_by= or partition=, which replace files when the new ones are there."
        )


def _no_pattern(path: str) -> str:
    """For what takes paths as patterns."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


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
    place = _location(spark, table) if partition_by else None
    with (
        _leaving_nothing(spark, place) if place is not None else nullcontext(),
        _setting(spark, "spark.sql.sources.partitionOverwriteMode", "dynamic"),  # insertInto takes no option of the writer
    ):
        frame.select(*map(quoted, names)).write.mode("overwrite").insertInto(table)


@contextmanager
def _setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)


def _location(spark: SparkSession, table: str) -> str | None:
    """The folder of a table's files; None of a table without."""
    told = spark.sql(f"describe table extended {table}").where("col_name = 'Location'").collect()
    return str(told[0]["data_type"]) if told else None


# -- what killed writes have left --------------------------------------------------------------------------------------


class Writer(NamedTuple):
    """``instance`` is of a task instance, and empty outside of one that Evenflow runs."""

    instance: str
    system: str
    pid: int
    born: int

    @classmethod
    def this(cls) -> Writer:
        pid = os.getpid()
        system = driver.system() or uuid.uuid4().hex  # where processes cannot be told apart
        return cls(_instance(), _digest(system), pid, driver.born(pid) or 0)

    @classmethod
    def of_mark(cls, name: str) -> Writer | None:
        """Returns None for another file."""
        found = re.fullmatch(r"_evenflow-([0-9a-f]*)-([0-9a-f]+)-(\d+)-(\d+)", name)
        return None if found is None else cls(found[1], found[2], int(found[3]), int(found[4]))

    @property
    def mark(self) -> str:
        """The name of its mark."""
        return f"_evenflow-{self.instance}-{self.system}-{self.pid}-{self.born}"

    def is_over(self, this: Writer) -> bool:
        """Whether it is surely dead. A process of this host is seen; one of another host is if it had an earlier try of the same
        task instance, because no try begins before those before it have ended.
        """
        if self.system == this.system:
            return driver.born(self.pid) != self.born
        return bool(self.instance) and self.instance == this.instance


def _instance() -> str:
    try:
        instance = get_current_context()["ti"]
    except NoContext:
        return ""
    return _digest(instance.page_url) if instance.epoch else ""


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:12]


@contextmanager
def _leaving_nothing(spark: SparkSession, path: str) -> Iterator[None]:
    """Deletes what dead writers have left at ``path``, and marks the folder of the write that is done meanwhile."""
    if not hasattr(spark, "_jvm"):
        yield
        return
    places, this = _Places(spark, path), Writer.this()
    places.delete_left(this)
    number = random.randrange(1, 2**31)  # of the folder that Spark makes in that of the write: so it is known which one is ours
    over = threading.Event()
    marking = threading.Thread(target=places.mark, args=(number, this, over), name="spark-staging", daemon=True)
    with _setting(spark, "mapreduce.job.application.attempt.id", str(number)):
        marking.start()
        try:
            yield
        finally:
            over.set()
            marking.join()


class _Places:
    """The folders of writes at ``path``, in the storage where Spark sees them."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        java = cast("Any", spark)
        self._path, self._of = path, java._jvm.org.apache.hadoop.fs.Path
        self._files = self._of(path).getFileSystem(java._jsparkSession.sessionState().newHadoopConf())

    def delete_left(self, this: Writer) -> None:
        deleted = 0
        for folder in self._found(".spark-staging-*")[:MOST_STAGED]:
            writers = [Writer.of_mark(each.getName()) for each in self._found(f"{folder.getName()}/_evenflow-*")]
            if writers and all(writer is not None and writer.is_over(this) for writer in writers):
                deleted += bool(self._files.delete(folder, True))
        if deleted:
            print(f"Deleted what killed writes have left in {self._path} (folders: {deleted:,}).", flush=True)

    def mark(self, number: int, this: Writer, over: threading.Event) -> None:
        """Marks the folder of a write as soon as it is there. A write that is not marked is left if it is killed."""
        while not over.wait(STAGED_LOOK):
            with suppress(Exception):  # the JVM is gone, or storage fails, which the write tells
                for inside in self._found(f".spark-staging-*/_temporary/{number}"):
                    folder = inside.getParent().getParent()
                    self._files.create(self._of(folder, this.mark)).close()
                    return

    def _found(self, pattern: str) -> list[Any]:
        return [each.getPath() for each in self._files.globStatus(self._of(_no_pattern(self._path), pattern)) or ()]
