"""A class-data archive for Spark's JVM: it halves what a session costs before its first result.

A fresh JVM spends most of that on reading and verifying ten thousand classes of Spark. A JVM can write down what it has loaded and
map that file the next time (JEP 350). Measured with Java 17 on two cores, CPU seconds of the JVM, median of three:

    until the session is there   9.5  ->  4.9
    first query and Parquet     10.2  ->  5.3

It costs 180 MB of disk and about half a minute, once: ``python -m evenflow.spark.archive``. A JVM checks that an archive is of
its own build and of the same jars, and does without when it is not. So every classic session names the archive if there is one.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenflow.errors import SparkUnavailable
from evenflow.sdk.secrets.connections import Connection
from evenflow.spark.java import Java, find_java
from evenflow.spark.limits import ARCHIVE_WRITTEN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUIET = "-Xlog:disable -Xlog:all=error:stderr"  # hundreds of warnings of classes that cannot be archived


def archive_path(java: Java) -> Path:
    """Where the archive for this Java and this pyspark is, or would be: in the user's cache directory."""
    import pyspark

    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    key = hashlib.sha256(f"{java.home}\0{pyspark.__file__}".encode()).hexdigest()[:12]
    return cache / "evenflow" / f"spark-{pyspark.__version__}-java-{java.version}-{key}.jsa"


def use_archive(java: Java) -> dict[str, str]:
    """The Spark configuration by which a driver's JVM uses the archive; empty when there is none."""
    path = archive_path(java)
    return {"spark.driver.defaultJavaOptions": f"-XX:SharedArchiveFile={path} {_QUIET}"} if path.is_file() else {}


def make_archive() -> Path:
    """Runs a session that does a bit of everything, and has its JVM write the archive as it ends."""
    from evenflow.spark.classic import end_jvm
    from evenflow.spark.session import session_for

    path = archive_path(find_java())
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    conf = {"spark.driver.defaultJavaOptions": f"-XX:ArchiveClassesAtExit={partial} {_QUIET}"}
    local = Connection.parse("archive", "spark-local://?cores=2")
    try:
        with session_for(local, app_name="archive", conf=conf, progress=lambda *_: None) as spark:
            _exercise(spark, f"{spark.conf.get('spark.sql.warehouse.dir')}/archive")
        end_jvm(within_s=ARCHIVE_WRITTEN)
        if not partial.is_file():
            raise SparkUnavailable(f"The JVM wrote no class-data archive to {partial}. Is there room for 200 MB?")
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


if __name__ == "__main__":
    sys.stdout.write(f"Wrote {make_archive()}\n")
