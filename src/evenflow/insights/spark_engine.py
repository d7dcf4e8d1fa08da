"""Spark, which makes the marts in the place of its session: on this machine or on a cluster. The caller passes the session, and
this module imports nothing of pyspark.

A mart is a query of many small steps, between which processors wait for the driver, so several are made at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from evenflow.insights.engines import TellMart, ignore
from evenflow.insights.lake import MartRow, check, complete, mart_file, rows_of, whole
from evenflow.insights.tables import BRONZE, LAYERS, MARTS, Mart, legal_sql

AT_ONCE = 3  # marts: with more each has less memory, and the driver is busy
# Spark's names for the types of Arrow.
_TYPES = {"int64": "bigint", "int32": "int", "timestamp": "timestamp", "string": "string", "bool": "boolean"}


class Spark:
    """Makes marts by a SparkSession. A mart that others need is read from its files, so each plan has one statement."""

    name = "spark"

    def __init__(self, session: Any) -> None:
        self._session = session

    def make(self, lake: Path, tell: TellMart = ignore, *, layers: Sequence[str] = LAYERS) -> None:
        """Makes the marts of these layers, each when those that it needs are there, and tells of it from this thread. Those of
        silver, which all others need, exist already unless they are among them.
        """
        check(lake)
        complete(lake)
        spark, lake = self._session, lake.absolute()
        for table, columns in BRONZE.items():
            schema = ", ".join(f"{name} {_TYPES[kind]}" for name, kind in columns.items())
            reader = spark.read.schema(schema).option("recursiveFileLookup", "true").option("pathGlobFilter", "*.parquet")
            reader.parquet(f"file://{lake}/bronze/{table}").createOrReplaceTempView(table)
        for table, legal in legal_sql().items():
            spark.sql(legal).createOrReplaceTempView(table)
        by_name = {mart.name: mart for mart in MARTS if mart.layer in layers}
        if "silver" not in layers:
            for mart in (mart for mart in MARTS if mart.layer == "silver"):
                spark.read.parquet(f"file://{mart_file(lake, self.name, mart.name)}").createOrReplaceTempView(mart.name)
        order = TopologicalSorter({mart.name: mart.needs & by_name.keys() for mart in by_name.values()})
        order.prepare()
        working: set[Future[Mart]] = set()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            while order.is_active():
                working |= {pool.submit(self._make, lake, by_name[name]) for name in order.get_ready()}
                done, working = wait(working, return_when=FIRST_COMPLETED)
                for mart in (future.result() for future in done):
                    tell(mart)
                    order.done(mart.name)

    def rows(self, lake: Path, mart: str, columns: Sequence[str] | None = None) -> list[MartRow]:
        return rows_of(mart_file(lake, self.name, mart), columns)

    def _make(self, lake: Path, mart: Mart) -> Mart:
        target, rows = mart_file(lake, self.name, mart.name), self._session.sql(mart.sql)
        with whole(target) as unfinished:
            rows.write.mode("overwrite").parquet(f"file://{unfinished}")
        # Its schema is known, and files are looked into for it otherwise.
        self._session.read.schema(rows.schema).parquet(f"file://{target}").createOrReplaceTempView(mart.name)
        return mart
