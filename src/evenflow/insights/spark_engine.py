"""Spark, which makes the marts in the place of its session: on this machine or on a cluster. The caller passes the session, and
this module imports nothing of pyspark.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evenflow.insights.engines import TellMart, ignore
from evenflow.insights.lake import MartRow, check, complete, mart_file, rows_of, whole
from evenflow.insights.tables import BRONZE, LAYERS, MARTS, legal_sql

# Spark's names for the types of Arrow.
_TYPES = {"int64": "bigint", "int32": "int", "timestamp": "timestamp", "string": "string", "bool": "boolean"}


class Spark:
    """Makes marts by a SparkSession. A mart that others need is read from its files, so each plan has one statement."""

    name = "spark"

    def __init__(self, session: Any) -> None:
        self._session = session

    def make(self, lake: Path, tell: TellMart = ignore, *, layers: Sequence[str] = LAYERS) -> None:
        """Makes the marts of these layers. Those of silver, which all others need, exist already unless they are among them."""
        check(lake)
        complete(lake)
        spark, lake = self._session, lake.absolute()
        for table, columns in BRONZE.items():
            schema = ", ".join(f"{name} {_TYPES[kind]}" for name, kind in columns.items())
            reader = spark.read.schema(schema).option("recursiveFileLookup", "true").option("pathGlobFilter", "*.parquet")
            reader.parquet(f"file://{lake}/bronze/{table}").createOrReplaceTempView(table)
        for table, legal in legal_sql().items():
            spark.sql(legal).createOrReplaceTempView(table)
        for mart in (mart for mart in MARTS if mart.layer in ("silver", *layers)):
            target = mart_file(lake, self.name, mart.name)
            if mart.layer in layers:
                with whole(target) as unfinished:
                    spark.sql(mart.sql).write.mode("overwrite").parquet(f"file://{unfinished}")
                tell(mart)
            spark.read.parquet(f"file://{target}").createOrReplaceTempView(mart.name)

    def rows(self, lake: Path, mart: str, columns: Sequence[str] | None = None) -> list[MartRow]:
        return rows_of(mart_file(lake, self.name, mart), columns)
