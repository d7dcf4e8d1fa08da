"""DataFrames as files, and the files as the same DataFrames."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evenflow.errors import SparkFailedForGood
from evenflow.sdk.operators.spark_frame import SparkFrame
from evenflow.spark.frames import kept, make_view, read, read_all, write
from evenflow.spark.reasons import explained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NAME = "7-0123456789abcdef.parquet"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / NAME).mkdir()
    return tmp_path / NAME


@pytest.fixture
def frame(spark: SparkSession, folder: Path) -> SparkFrame:
    made = spark.range(0, 5, 1, 2).selectExpr(
        "id", "cast(id as decimal(9,2)) as price", "array(named_struct('day', date'2026-01-01')) as `days of it`", "null as none"
    )
    return write(made.drop("none"), folder.parent.as_uri(), NAME)


def test_a_dataframe_is_read_as_it_was(spark: SparkSession, frame: SparkFrame) -> None:
    """R-SP1: schema and rows."""
    assert (frame.rows, frame.files) == (5, 2)
    assert repr(frame).startswith("<DataFrame of 5 rows (id long, price decimal(9,2), days of it array) in file:///")
    again = read(spark, frame)
    assert again.schema.simpleString() == "struct<id:bigint,price:decimal(9,2),days of it:array<struct<day:date>>>"
    assert again.count() == 5
    inside = read_all(spark, ((frame, 1), {"all": [frame]}))
    assert (inside[0][0].count(), inside[0][1], inside[1]["all"][0].count()) == (5, 1, 5)
    make_view(spark, "of_it", frame)
    assert spark.sql("select sum(price) as total from of_it").first() == (10,)


def test_what_is_no_dataframe_is_left_as_it_is(spark: SparkSession) -> None:
    assert kept([1], pytest.fail) == [1]
    with pytest.raises(SparkFailedForGood, match=r"The view 'v' must be a DataFrame .* not \[1\]"):
        make_view(spark, "v", [1])


def test_a_dataframe_inside_of_a_result_is_refused_with_what_to_do(spark: SparkSession) -> None:
    """R-SP1: nothing is written that no row of the database would commit."""
    for inside, where in (({"a": [1, {"b": spark.range(1)}]}, "item 'a', item 1, item 'b'"), ((0, spark.range(1)), "item 1")):
        with pytest.raises(SparkFailedForGood, match=f"The result, {where} is a DataFrame.*several are several tasks"):
            kept(inside, pytest.fail)


def test_an_empty_dataframe_is_one(spark: SparkSession, folder: Path) -> None:
    frame = write(spark.range(0), folder.parent.as_uri(), NAME)
    assert (frame.rows, read(spark, frame).collect()) == (0, [])


def test_files_that_are_not_those_that_were_written_are_not_read(spark: SparkSession, frame: SparkFrame, folder: Path) -> None:
    """Part of them, others, or none."""
    second = max(folder.glob("part-*"))
    moved = second.rename(folder.parent / second.name)
    with pytest.raises(SparkFailedForGood, match="was written as 2 files, and 1 are there"):
        read(spark, frame)
    moved.rename(second)
    spark.range(5).write.mode("overwrite").parquet(str(folder))
    other = SparkFrame(**{**frame.told(), "files": len(list(folder.glob("part-*")))})
    with pytest.raises(SparkFailedForGood, match="have another schema by now"):
        read(spark, other)
    spark.range(0).selectExpr("id").write.mode("overwrite").parquet(str(folder))
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    with pytest.raises(SparkFailedForGood, match=r"are not there\. They go with the run"):
        read(spark, frame)


def test_a_folder_of_the_api_that_is_not_on_this_host(spark: SparkSession, tmp_path: Path) -> None:
    """R-EX3: nothing is written where nobody would find it."""
    with pytest.raises(SparkFailedForGood, match=r"is not on this host\. Set EVENFLOW_XCOM_URL"):
        write(spark.range(1), tmp_path.as_uri(), NAME)
    assert list(tmp_path.iterdir()) == []


def test_columns_of_one_name_are_refused_before_anything_is_written(spark: SparkSession, folder: Path) -> None:
    with pytest.raises(SparkFailedForGood, match="several columns named id"):
        write(spark.range(1).selectExpr("id", "id as ID"), folder.parent.as_uri(), NAME)
    with pytest.raises(SparkFailedForGood, match=r"has no columns.*leave result='frame' out"):
        write(spark.sql("create temporary view of_nothing as select 1 as a"), folder.parent.as_uri(), NAME)
    assert list(folder.iterdir()) == []


def test_object_storage_has_the_name_that_hadoop_has_for_it(spark: SparkSession, folder: Path) -> None:
    """R-SP1, R-EX3: Hadoop's own overlay shows a folder of this machine under the address of a bucket."""
    overlay = {
        "fs.s3a.impl": "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme",
        "fs.viewfs.mounttable.lake.link./results": folder.parent.as_uri(),
        "fs.viewfs.overload.scheme.target.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    }
    for name, value in overlay.items():
        spark.conf.set(name, value)
    try:
        frame = write(spark.range(3), "s3://lake/results", NAME)
        assert (frame.path, frame.rows) == (f"s3://lake/results/{NAME}", 3)
        assert sorted(row.id for row in read(spark, frame).collect()) == [0, 1, 2]
        assert len(list(folder.glob("part-*.parquet"))) == frame.files
    finally:
        for name in overlay:
            spark.conf.unset(name)


def test_object_storage_that_this_spark_does_not_know_is_said_with_its_package(spark: SparkSession) -> None:
    """R-SP6: once, as another try would not know it either."""
    said = r"needs .*\?spark\.jars\.packages=org\.apache\.hadoop:hadoop-aws:\d+\.\d"
    with pytest.raises(SparkFailedForGood, match=said), explained():
        write(spark.range(3), "s3://elsewhere/results", NAME)
