"""Gold: how much weight each module carries (PageRank), and what that makes of packages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DAMPING = 0.85  # as Brin and Page chose it, The Anatomy of a Large-Scale Hypertextual Web Search Engine, 1998
CLOSE_ENOUGH = 1e-3  # sum of absolute changes of all ranks, which sum to 1; the first hundred places stand long before
MOST_ROUNDS = 20

Told = Callable[[int, float], None]


def rank_modules(spark: SparkSession, lake: Path, tell: Told) -> dict[str, Any]:
    """Writes ``gold/modules``, ``packages``, ``package_edges`` and ``pagerank.json``; ``tell`` hears how each round went."""
    from pyspark.sql import functions as F

    modules = spark.read.parquet(str(lake / "silver" / "modules"))
    edges = spark.read.parquet(str(lake / "silver" / "edges"))
    ranks, changes = pagerank(modules.select("module"), edges.select("source", "target"), tell)
    degrees = {
        "imports": edges.groupBy(F.col("source").alias("module")).agg(F.count("*").alias("imports")),
        "imported_by": edges.groupBy(F.col("target").alias("module")).agg(F.count("*").alias("imported_by")),
    }
    ranked = modules.join(ranks, "module")
    for name, degree in degrees.items():
        ranked = ranked.join(degree, "module", "left").fillna(0, [name])
    ranked = ranked.withColumn("package", F.when(F.col("kind") == "stdlib", "(stdlib)").otherwise(F.col("package"))).cache()
    between = package_edges(ranked, edges).cache()
    tables = {"modules": ranked, "packages": packages_of(ranked, between), "package_edges": between}
    for name, table in tables.items():
        table.coalesce(1).write.mode("overwrite").parquet(str(lake / "gold" / name))
    summary = {"rounds": len(changes), "converged": changes[-1] < CLOSE_ENOUGH, "changes": changes}
    (lake / "gold" / "pagerank.json").write_text(json.dumps(summary))
    return summary


def pagerank(nodes: DataFrame, edges: DataFrame, tell: Told) -> tuple[DataFrame, list[float]]:
    """(``module``, ``rank``), the ranks summing to 1, and how much all ranks changed in each round.

    A module gives its rank in equal shares to those that it imports. What has no imports gives to all alike.
    """
    from pyspark.sql import functions as F

    count = nodes.count()
    fan_out = edges.groupBy("source").agg(F.count("*").alias("fan_out"))
    links = edges.join(fan_out, "source").select("source", "target", (1.0 / F.col("fan_out")).alias("share")).cache()
    start = nodes.join(fan_out.withColumnRenamed("source", "module"), "module", "left")
    ranks = start.select("module", F.col("fan_out").isNull().alias("sink"), F.lit(1.0 / count).alias("rank")).localCheckpoint()
    sunk = ranks.where("sink").count() / count
    changes: list[float] = []
    while not changes or (changes[-1] >= CLOSE_ENOUGH and len(changes) < MOST_ROUNDS):
        base = (1.0 - DAMPING + DAMPING * sunk) / count
        given = links.join(ranks.withColumnRenamed("module", "source"), "source")
        taken = given.groupBy(F.col("target").alias("module")).agg(F.sum(F.col("rank") * F.col("share")).alias("taken"))
        rank = F.lit(base) + DAMPING * F.coalesce("taken", F.lit(0.0))
        # Not eager: the aggregation below is the first action, so a round is one job.
        ranks = (
            ranks.join(taken, "module", "left")
            .select("module", "sink", rank.alias("rank"), F.abs(rank - F.col("rank")).alias("change"))
            .localCheckpoint(eager=False)
        )
        change, sunk = ranks.agg(F.sum("change"), F.sum(F.when(F.col("sink"), F.col("rank")).otherwise(0.0))).first()
        changes.append(float(change))
        tell(len(changes), changes[-1])
    return ranks.select("module", "rank"), changes


def package_edges(ranked: DataFrame, edges: DataFrame) -> DataFrame:
    """A row a pair of packages: how many pairs of their modules import one another. The standard library is one package."""
    from pyspark.sql import functions as F

    package = ranked.select("module", "package")
    return (
        edges.join(package.withColumnsRenamed({"module": "source", "package": "from"}), "source")
        .join(package.withColumnsRenamed({"module": "target", "package": "to"}), "target")
        .where("from != to")
        .groupBy("from", "to")
        .agg(F.count("*").alias("edges"), F.max("on_import").alias("on_import"))
    )


def packages_of(ranked: DataFrame, between: DataFrame) -> DataFrame:
    """A row a package."""
    from pyspark.sql import functions as F

    users = between.groupBy(F.col("to").alias("package")).agg(F.count("*").alias("used_by"))
    uses = between.groupBy(F.col("from").alias("package")).agg(F.count("*").alias("uses"))
    sums = ranked.groupBy("package", "kind").agg(
        F.count("*").alias("modules"),
        F.sum(F.when(F.col("form") == "compiled", 1).otherwise(0)).alias("compiled"),
        F.sum("lines").alias("lines"),
        F.sum("functions").alias("functions"),
        F.sum("classes").alias("classes"),
        F.avg(F.col("docstring").cast("double")).alias("documented"),
        F.sum("rank").alias("rank"),
    )
    return sums.join(users, "package", "left").join(uses, "package", "left").fillna(0, ["used_by", "uses"])
