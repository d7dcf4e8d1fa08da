"""A session on a Spark Connect server that does a bit of everything, so that the next one finds it done: ``python -m
evenflow.spark.warm_up PORT``, with the token in the environment.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from evenflow.spark.local_server import HOST


def warm_up(port: int) -> None:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    spark = SparkSession.builder.remote(f"sc://{HOST}:{port}").create()
    try:
        numbers = spark.range(0, 1000, 1, 2).withColumn("k", F.col("id") % 7)
        names = spark.createDataFrame([(0, "a"), (1, "b")], "k long, name string")
        numbers.join(names, "k").groupBy("name").agg(F.count("*").alias("n")).orderBy("name").collect()
        spark.range(10).selectExpr("count(*)").collect()
        numbers.mapInArrow(_unchanged, "id long, k long").count()
    finally:
        spark.stop()


def _unchanged(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


if __name__ == "__main__":
    warm_up(int(sys.argv[1]))
