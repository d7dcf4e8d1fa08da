"""Rows that replace what is there, in one place or in the partitions that they have."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from evenflow.errors import SparkFailedForGood
from evenflow.spark.writing import Writer, overwrite
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    yield "orders"
    spark.sql("drop table if exists orders")


def counts(frame: DataFrame) -> dict[int, int]:
    return {row["day"]: row["count"] for row in frame.groupBy("day").count().collect()}


def days(spark: SparkSession, *days: int, rows: int = 2) -> DataFrame:
    return spark.range(rows).selectExpr("id", f"explode(array({', '.join(map(str, days))})) as day")


def test_files_are_replaced_in_the_partitions_that_the_rows_have(spark: SparkSession, tmp_path: Path) -> None:
    """R-SP1: the same rows twice are there once, and other days stay."""
    path = str(tmp_path / "orders")
    assert overwrite(days(spark, 1, 2), path=path, partition_by=["day"]) == 4
    for _ in range(2):
        assert overwrite(days(spark, 2, 3, rows=5), path=path, partition_by=["day"]) == 10
    assert counts(spark.read.parquet(path)) == {1: 2, 2: 5, 3: 5}
    assert overwrite(days(spark, 4), path=path) == 2
    assert counts(spark.read.parquet(path)) == {4: 2}


def test_rows_never_replace_the_files_that_they_are_read_from(spark: SparkSession, tmp_path: Path) -> None:
    """R-SP1: Spark deleted them first, and had nothing to read then. Partitions are replaced when their new files are there."""
    path = str(tmp_path / "orders of 2026")
    overwrite(days(spark, 1, 2), path=path, partition_by=["day"])
    for own in (path, f"file://{path}", f"{path}/day=1/../"):
        with pytest.raises(SparkFailedForGood, match=r"are read from .* another path, or by partition_by="):
            overwrite(spark.read.parquet(path).where("day = 1"), path=own)
    assert counts(spark.read.parquet(path)) == {1: 2, 2: 2}
    assert overwrite(spark.read.parquet(path).where("day = 1 and id = 0"), path=path, partition_by=["day"]) == 1
    assert counts(spark.read.parquet(path)) == {1: 1, 2: 2}
    assert overwrite(spark.read.parquet(path), path=str(tmp_path / "others")) == 3


def test_a_table_is_replaced_in_the_partitions_that_the_rows_have(spark: SparkSession, table: str) -> None:
    assert overwrite(days(spark, 1, 2), table=table, partition_by=["day"]) == 4
    for _ in range(2):  # columns go by their names, not by their places
        assert overwrite(days(spark, 2, rows=5).select("day", "id"), table=table, partition_by=["day"]) == 5
    assert counts(spark.table(table)) == {1: 2, 2: 5}
    assert spark.conf.get("spark.sql.sources.partitionOverwriteMode").lower() == "static"


def test_a_table_whose_first_write_dies_is_filled_by_the_next(spark: SparkSession, table: str) -> None:
    """R-SP1: the table is there before its rows, so that files of no table are in nobody's way."""
    broken = days(spark, 1).selectExpr("id", "if(id = 1, raise_error('died'), day) as day")
    with pytest.raises(Exception, match="died"):
        overwrite(broken, table=table, partition_by=["day"])
    assert counts(spark.table(table)) == {}
    assert overwrite(days(spark, 1), table=table, partition_by=["day"]) == 2
    assert counts(spark.table(table)) == {1: 2}


def left_by(path: Path, name: str, writer: Writer | None) -> Path:
    """A folder as a killed write leaves it."""
    folder = path / f".spark-staging-{name}"
    attempt = folder / "_temporary" / "0" / "_temporary" / "attempt_1" / "day=1"
    attempt.mkdir(parents=True)
    (attempt / "part-00000.parquet").touch()
    if writer is not None:
        (folder / writer.mark).touch()
    return folder


def test_what_killed_writes_have_left_is_deleted_and_of_no_other(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R-SP1: a process of this host that has ended, and an earlier try of the same instance, wherever it ran."""
    path, this = tmp_path / "orders {a}", Writer.this()
    with subprocess.Popen(["true"]) as ended:
        dead = this._replace(pid=ended.pid)
    dead = dead._replace(born=1)
    gone = left_by(path, "dead", dead)
    stay = [
        left_by(path, "alive", this),
        left_by(path, "elsewhere", dead._replace(system="abc")),
        left_by(path, "strange", None),
    ]
    assert overwrite(days(spark, 1), path=str(path), partition={"day": "1"}) == 2
    assert [gone.exists(), *(each.exists() for each in stay)] == [False, True, True, True]
    assert f"Deleted what killed writes have left in {path} (folders: 1)." in capsys.readouterr().out
    assert spark.conf.get("mapreduce.job.application.attempt.id", None) is None
    other = dead._replace(system="abc")
    assert not other.is_over(this)
    assert other._replace(instance="aa").is_over(this._replace(instance="aa"))
    assert not other._replace(instance="ab").is_over(this._replace(instance="aa"))


def test_the_folder_of_a_write_is_marked_before_it_has_a_file(spark: SparkSession, tmp_path: Path) -> None:
    """R-SP1: a write that is killed while its query has not had a row yet."""
    path, go = tmp_path / "orders", tmp_path / "go"

    def halting(batches: Iterator[Any]) -> Iterator[Any]:
        while not go.exists():
            time.sleep(0.05)
        yield from batches

    rows = spark.range(2).mapInArrow(halting, "id long")
    writing = threading.Thread(target=overwrite, args=(rows,), kwargs={"path": str(path), "partition": {"day": "1"}})
    writing.start()
    wait_until(lambda: list(path.glob(f".spark-staging-*/{Writer.this().mark}")), within_s=90.0)
    assert not list(path.glob("**/*.parquet"))
    go.touch()
    writing.join()
    assert [each.name for each in path.iterdir() if each.name.startswith(".spark")] == []
    assert counts(spark.read.parquet(str(path))) == {1: 2}


def test_what_killed_writes_have_left_at_a_table_is_deleted(spark: SparkSession, table: str) -> None:
    overwrite(days(spark, 1), table=table, partition_by=["day"])
    place = Path(urlsplit(spark.sql(f"describe table extended {table}").where("col_name = 'Location'").collect()[0][1]).path)
    gone = left_by(place, "dead", Writer.this()._replace(born=1))
    assert overwrite(days(spark, 1), table=table, partition_by=["day"]) == 2
    assert not gone.exists()
    assert counts(spark.table(table)) == {1: 2}


def test_no_rows_are_written_as_none(spark: SparkSession, table: str, tmp_path: Path) -> None:
    for place in ({"table": table}, {"path": str(tmp_path / "orders")}):
        for rows in (2, 0):
            assert overwrite(days(spark, 1, rows=rows).withColumnRenamed("id", "a`b"), **place) == rows
    assert counts(spark.table(table)) == {}


def test_a_partition_is_replaced_by_its_rows_also_by_none(spark: SparkSession, table: str, tmp_path: Path) -> None:
    """R-SP1: a partition that has no rows any more keeps none of the old ones, and others stay."""
    for place in ({"table": table}, {"path": str(tmp_path / "orders")}):
        for rows, day in ((3, "1: a/b=%'"), (2, "2"), (2, "2"), (0, "1: a/b=%'")):
            assert overwrite(spark.range(rows), **place, partition={"day": day}) == rows
            read = spark.table(table) if "table" in place else spark.read.parquet(place["path"])
            expected = {"1: a/b=%'": 3} if rows == 3 else {"1: a/b=%'": 3, "2": 2} if rows else {"2": 2}
            assert {str(day): count for day, count in counts(read).items()} == expected


def test_a_row_of_another_partition_fails_the_write_and_replaces_nothing(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "orders")
    assert overwrite(days(spark, 1), path=path, partition={"day": "1"}) == 2
    with pytest.raises(Exception, match="The partition is day=1, and a row has there: 2"):
        overwrite(days(spark, 1, 2, rows=9), path=path, partition={"day": "1"})
    assert counts(spark.read.parquet(path)) == {1: 2}


def test_what_does_not_fit_the_table_changes_nothing(spark: SparkSession, table: str) -> None:
    overwrite(days(spark, 1), table=table, partition_by=["day"])
    with pytest.raises(SparkFailedForGood, match=r"partitioned by day, not by nothing. Write partition_by=\['day'\]"):
        overwrite(days(spark, 2), table=table)
    with pytest.raises(SparkFailedForGood, match="has the columns id, day, and the rows have id, day, more"):
        overwrite(days(spark, 2).selectExpr("*", "1 as more"), table=table, partition_by=["day"])
    assert counts(spark.table(table)) == {1: 2}


def test_what_makes_no_sense_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SparkFailedForGood, match="one place"):
        overwrite(days(spark, 1))
    with pytest.raises(SparkFailedForGood, match="no column week to partition by; they have: id, day"):
        overwrite(days(spark, 1), path=str(tmp_path / "x"), partition_by=["week"])
    with pytest.raises(SparkFailedForGood, match="Leave partition_by= out"):
        overwrite(days(spark, 1), path=str(tmp_path / "x"), partition_by=["day"], partition={"day": "1"})
    with pytest.raises(SparkFailedForGood, match="must name columns and their values as texts"):
        overwrite(days(spark, 1), path=str(tmp_path / "x"), partition={"day": 1})  # type: ignore[dict-item]
    assert list(tmp_path.iterdir()) == []
