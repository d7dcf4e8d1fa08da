"""DataFrames as results and SQL with bound parameters, where Spark is elsewhere: on a Spark Connect server, and on a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenflow.sdk.secrets.connections import Connection
from evenflow.spark.frames import kept, make_view
from evenflow.spark.queries import query, rows_of
from evenflow.spark.session import session_for
from evenflow.spark.writing import overwrite
from tests.spark.servers import connect_server, standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_500)]  # four JVMs, which a crowded machine starts in minutes

NAME = "7-0123456789abcdef.parquet"


@pytest.fixture(params=["connect", "cluster"])
def elsewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connection]:
    with standalone_cluster(tmp_path) if request.param == "cluster" else connect_server(tmp_path) as uri:
        extra = f"?python={sys.executable}&spark.executor.memory=512m" if request.param == "cluster" else ""
        yield Connection.parse("spark_default", uri + extra)


def test_a_dataframe_is_a_result_and_sql_finds_it_with_what_is_bound(elsewhere: Connection, tmp_path: Path) -> None:
    """R-SP1: texts by name and lists by place, as on one machine; what is written is there once."""
    (tmp_path / NAME).mkdir()
    text = "x' or 1=1"
    with session_for(elsewhere, app_name="data", conf={}, progress=lambda *_: None) as spark:
        made = spark.range(6).selectExpr("id", "cast(id * 1.5 as decimal(9, 2)) as price", "array(id % 2) as kinds")
        frame = kept(made, lambda: {"url": tmp_path.as_uri(), "name": NAME})
        assert (frame.rows, frame.columns) == (6, {"id": "long", "price": "decimal(9,2)", "kinds": "array"})
        make_view(spark, "orders", frame)
        dear = query(spark, "select *, :day as day from orders where price >= :least", {"least": 3, "day": text})
        dear.createOrReplaceTempView("dear")
        some = query(spark, "select id, price, day from dear where id > ? and array_contains(?, id) order by id", [2, [1, 3, 5]])
        assert [(row["id"], str(row["price"]), row["day"]) for row in rows_of(some, 10) or []] == [
            (3, "4.50", text),
            (5, "7.50", text),
        ]
        place, by_kind = str(tmp_path / "by_kind"), query(spark, "select id, kinds[0] as kind from orders")
        assert overwrite(by_kind, path=place, partition_by=["kind"]) == 6
        assert overwrite(by_kind.where("kind = 1"), path=place, partition_by=["kind"]) == 3
        assert spark.read.parquet(place).count() == 6
        assert overwrite(by_kind, table="orders_by_kind", partition_by=["kind"]) == 6
        assert overwrite(by_kind.where("id = 1"), table="orders_by_kind", partition={"kind": "1"}) == 1
        assert spark.table("orders_by_kind").count() == 4
