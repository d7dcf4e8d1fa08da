"""Makes the class-data archive for Spark's JVM (:mod:`evenflow.spark.class_data`): ``python -m evenflow.spark.archive``."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenflow.errors import SparkUnavailable
from evenflow.sdk.secrets.connections import Connection
from evenflow.spark.class_data import QUIET, archive_path, is_whole, mark_whole
from evenflow.spark.classic import end_jvm
from evenflow.spark.java import find_java
from evenflow.spark.limits import ARCHIVE_WRITTEN
from evenflow.spark.session import session_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def make_archive() -> Path:
    """Runs a session that does a bit of everything, and has its JVM write the archive as it ends."""
    path = archive_path(find_java())
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    conf = {"spark.driver.defaultJavaOptions": f"-XX:ArchiveClassesAtExit={partial} {QUIET}"}
    local = Connection.parse("archive", "spark-local://?cores=2")
    try:
        with session_for(local, app_name="archive", conf=conf, progress=lambda *_: None) as spark:
            _exercise(spark, f"{spark.conf.get('spark.sql.warehouse.dir')}/archive")
        code = end_jvm(within_s=ARCHIVE_WRITTEN)
        if code != 0 or not partial.is_file():
            raise SparkUnavailable(
                f"The JVM wrote no whole class-data archive to {partial} (exit code {code}). Is there room for 200 MB?"
            )
        mark_whole(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def _exercise(spark: SparkSession, folder: str) -> None:
    """Loads the classes that most jobs need."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    numbers = spark.range(0, 1000, 1, 2).withColumn("k", F.col("id") % 7).withColumn("parts", F.split(F.lit("a.b"), r"\."))
    numbers.write.mode("overwrite").parquet(f"{folder}/numbers")
    numbers.select("id", F.explode("parts").alias("part")).write.mode("overwrite").json(f"{folder}/parts")
    stored = spark.read.parquet(f"{folder}/numbers").cache()
    parts = spark.read.schema("id long, part string").json(f"{folder}/parts")
    counts = stored.groupBy("k").agg(F.count("*").alias("n"), F.max_by("id", "k").alias("last")).localCheckpoint()
    ranked = stored.join(counts, "k").withColumn("place", F.row_number().over(Window.partitionBy("k").orderBy(F.desc("id"))))
    ranked.join(parts, "id", "left_semi").where("place = 1").orderBy("k").collect()
    names = spark.createDataFrame([("a", 1)], "part string, weight int")
    parts.join(names, "part", "left").mapInArrow(_unchanged, "part string, id long, weight int").groupBy("part").count().collect()


def _unchanged(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def main() -> str:
    """What was done: an archive that is there is of this Java and this pyspark, and stays."""
    path = archive_path(find_java())
    return f"{path} is there." if is_whole(path) else f"Wrote {make_archive()}"


if __name__ == "__main__":
    sys.stdout.write(f"{main()}\n")
