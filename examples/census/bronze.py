"""Bronze: every listed file with what its source says, parsed on Spark's Python workers."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from census.parsing import Facts, read_facts

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

LISTED = "path string, kind string, order int, form string, package string, module string, is_package boolean, bytes long"
FACTS = (
    "status string, reason string, error_line int, lines int, functions int, classes int, docstring boolean, "
    "imports array<struct<target: string, when: string, line: int>>"
)
BATCHES = 32  # files differ in size by a factor of thousands; in small batches the cores end together
OUTPUT_FILES = 4


def parse_files(spark: SparkSession, lake: Path, limit: int | None) -> dict[str, int]:
    """Writes ``bronze/files``, a row a listed file, and counts them by status.

    With a ``limit`` only so many source files are read, each time the same; the status of the others is ``unread``.
    """
    from pyspark.sql import functions as F

    listed = spark.read.schema(LISTED).json(str(lake / "listing"))
    wanted = F.col("form") == "source"
    if limit is not None:
        sample = listed.where(wanted).orderBy(F.xxhash64("path"), "path").limit(limit).select("path", F.lit(True).alias("sampled"))
        listed = listed.join(sample, "path", "left")
        wanted = F.col("sampled").isNotNull()
    columns = [name.split()[0] for name in LISTED.split(", ")]
    batches = listed.select(*columns, wanted.alias("wanted")).repartition(BATCHES, F.xxhash64("path"))
    target = str(lake / "bronze" / "files")
    batches.mapInArrow(read_batches, f"{LISTED}, {FACTS}").repartition(OUTPUT_FILES).write.mode("overwrite").parquet(target)
    return {row["status"]: row["count"] for row in spark.read.parquet(target).groupBy("status").count().collect()}


def read_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """From the columns of :data:`LISTED` and ``wanted``, whether to read the file, to those of :data:`LISTED` and :data:`FACTS`."""
    import pyarrow as pa

    gc.disable()  # syntax trees have no cycles, and to look for some in them takes a seventh of the time
    an_import = pa.struct([("target", pa.string()), ("when", pa.string()), ("line", pa.int32())])
    for batch in batches:
        facts = [_facts_of(row) for row in batch.to_pylist()]
        imports = [[dict(zip(("target", "when", "line"), i, strict=True)) for i in fact.imports] for fact in facts]
        columns = {
            "status": pa.array([fact.status for fact in facts], pa.string()),
            "reason": pa.array([fact.reason for fact in facts], pa.string()),
            "error_line": pa.array([fact.line for fact in facts], pa.int32()),
            "lines": pa.array([fact.lines for fact in facts], pa.int32()),
            "functions": pa.array([fact.functions for fact in facts], pa.int32()),
            "classes": pa.array([fact.classes for fact in facts], pa.int32()),
            "docstring": pa.array([fact.docstring for fact in facts], pa.bool_()),
            "imports": pa.array(imports, pa.list_(an_import)),
        }
        kept = batch.drop_columns(["wanted"])
        yield pa.RecordBatch.from_arrays([*kept.columns, *columns.values()], [*kept.schema.names, *columns])


def _facts_of(row: dict[str, Any]) -> Facts:
    if row["wanted"]:
        return read_facts(row["path"], row["module"], row["is_package"])
    return Facts("unread" if row["form"] == "source" else "compiled")
