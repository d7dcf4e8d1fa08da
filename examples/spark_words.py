"""A PySpark task: the session comes from the connection ``spark_default``, a local Spark when that is not defined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenflow import dag, task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT = """the session is started for the task and stopped after it
the same task runs on this machine on a cluster or on a connect server"""


@task.spark
def count_words(spark: SparkSession, text: str) -> list[tuple[str, int]]:
    from pyspark.sql import functions as F

    lines = spark.createDataFrame([(line,) for line in text.splitlines()], "line string")
    words = lines.select(F.explode(F.split("line", " ")).alias("word")).groupBy("word").count()
    return [(row["word"], row["count"]) for row in words.orderBy(F.desc("count"), "word").limit(3).collect()]


@task
def tell(words: list[tuple[str, int]]) -> None:
    for word, count in words:
        print(f"{count:3} {word}")


@dag(tags=["example", "spark"])
def spark_words() -> None:
    tell(count_words(TEXT))


spark_words()
