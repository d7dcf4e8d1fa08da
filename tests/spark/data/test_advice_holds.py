"""What is advised of skew changes what Spark does: the same join before and after, on a real session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from evenflow.spark.advice import advise
from evenflow.spark.status import FIGURES_WAIT_S, read_application

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

# Eight tasks: of the two to which these cores would have them merged, the larger one is the median.
BASE = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
}


@contextmanager
def having(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name) for name in conf}
    for name, value in conf.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))


def skewed(spark: SparkSession) -> DataFrame:
    """Nearly all of 200,000 orders, 64 random bytes each, are of one customer."""
    orders = spark.range(0, 200_000, 1, 4).selectExpr("if(id % 50 > 0, 0, id) as customer", "sha2(cast(id as string), 512) as text")
    return orders.join(spark.range(1000).withColumnRenamed("id", "customer"), "customer")


def run(frame: DataFrame) -> str:
    """Its plan, as it was adapted."""
    frame.collect()
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_a_join_splits_what_was_skewed_with_the_settings_that_are_advised(spark: SparkSession) -> None:
    """R-SP3: a threshold alone would split nothing that is smaller than 64 MiB."""
    with having(spark, BASE):
        assert "skew=true" not in run(skewed(spark))
        application, _ = read_application(spark.sparkContext, FIGURES_WAIT_S)
        stage = max(application.stages, key=lambda each: each.most_read_bytes)
        assert "customer" in stage.keys
        slow = replace(stage, median_task_s=1.0, longest_task_s=10.0)  # on a machine where this took so long
        advice = next(each for each in advise(replace(application, stages=(slow,))) if each.text.startswith("Skew"))
        assert "Rows are spread by customer" in advice.text
        with having(spark, advice.conf):
            assert "skew=true" in run(skewed(spark))
