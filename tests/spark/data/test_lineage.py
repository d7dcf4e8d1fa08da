"""What columns come from, told of thirty shapes of queries by their analysed plans; none of them is run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evenflow.api.lineage import event_of
from evenflow.spark import frames
from evenflow.spark.datasets import Dataset, of_jdbc, of_path
from evenflow.spark.lineage import LineagePlace, columns_of, datasets_of, lineage_told, read
from tests.openlineage_events import as_the_client_has_it, full

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

NAMES = {"dag_id": "d", "run_id": "r", "task_id": "t", "map_index": -1, "try_number": 1}
TRY = {**NAMES, "run_key": 1, "epoch": 1, "state": "success", "at": datetime.now(UTC)}
SIGNS = {"IDENTITY": "=", "TRANSFORMATION": "~", "AGGREGATION": "+"}
# Of each shape: a query, its columns, and what says which rows there are. "people.id =" is a column as it is, ~ one that was
# changed, + one with those of other rows; # says that nobody learns it; what is indirect is called by its name.
SHAPES: dict[str, tuple[str, dict[str, str], str]] = {
    "a column": ("select id from people", {"id": "people.id ="}, ""),
    "another name": ("select id as number from people", {"number": "people.id ="}, ""),
    "all columns": ("select * from cities", {"city": "cities.city =", "land": "cities.land ="}, ""),
    "a constant": ("select 1 as one, 'x' as x from people", {"one": "", "x": ""}, ""),
    "arithmetic": ("select id + age as sum from people", {"sum": "people.age ~ people.id ~"}, ""),
    "a cast": ("select cast(age as string) as age from people", {"age": "people.age ~"}, ""),
    "a function": ("select upper(name) as name from people", {"name": "people.name ~"}, ""),
    "a hash": ("select sha2(name, 256) as name from people", {"name": "people.name ~#"}, ""),
    "a filter": ("select id from people where age > 3", {"id": "people.id ="}, "people.age FILTER"),
    "a sort": ("select id from people order by age", {"id": "people.id ="}, "people.age SORT"),
    "a limit": ("select id from people limit 3", {"id": "people.id ="}, ""),
    "distinct rows": ("select distinct city from people", {"city": "people.city ="}, ""),
    "an aggregate": (
        "select city, max(age) as oldest from people group by city",
        {"city": "people.city =", "oldest": "people.age +"},
        "people.city GROUP_BY",
    ),
    "a count": ("select count(id) as n from people", {"n": "people.id +#"}, ""),
    "having": (
        "select city from people group by city having sum(age) > 9",
        {"city": "people.city ="},
        "people.age FILTER people.city GROUP_BY",
    ),
    "an aggregate of some": (
        "select sum(age) filter (where city = 'x') as n from people",
        {"n": "people.age + people.city CONDITIONAL"},
        "",
    ),
    "grouping sets": (
        "select city, name, sum(age) as n from people group by cube (city, name)",
        {"city": "people.city =", "name": "people.name =", "n": "people.age +"},
        "people.city GROUP_BY people.name GROUP_BY",
    ),
    "a join": (
        "select p.name, c.land from people p join cities c on p.city = c.city",
        {"name": "people.name =", "land": "cities.land ="},
        "cities.city JOIN people.city JOIN",
    ),
    "a join with itself": (
        "select a.name, b.age from people a join people b on a.id = b.id + 1",
        {"name": "people.name =", "age": "people.age ="},
        "people.id JOIN",
    ),
    "a semi join": (
        "select name from people p left semi join cities c on p.city = c.city",
        {"name": "people.name ="},
        "cities.city JOIN people.city JOIN",
    ),
    "using": ("select city, land, age from people join cities using (city)", {}, "cities.city JOIN people.city JOIN"),
    "a union": (
        "select name from people union all select land from cities",
        {"name": "cities.land = people.name ="},
        "",
    ),
    "what both have": (
        "select city from people intersect select city from cities",
        {"city": "people.city ="},
        "cities.city FILTER",
    ),
    "what only one has": (
        "select city from people except select city from cities",
        {"city": "people.city ="},
        "cities.city FILTER",
    ),
    "a case": (
        "select case when age > 3 then name else city end as word from people",
        {"word": "people.age CONDITIONAL people.city ~ people.name ~"},
        "",
    ),
    "if": ("select if(age > 3, id, 0) as id from people", {"id": "people.age CONDITIONAL people.id ~"}, ""),
    "a window": (
        "select sum(age) over (partition by city order by id) as n from people",
        {"n": "people.age + people.city WINDOW people.id WINDOW"},
        "",
    ),
    "a rank": (
        "select name, row_number() over (order by age) as place from people",
        {"name": "people.name =", "place": "people.age WINDOW"},
        "",
    ),
    "in a subquery": (
        "select name from people where city in (select city from cities where land = 'x')",
        {"name": "people.name ="},
        "cities.city FILTER cities.land FILTER people.city FILTER",
    ),
    "a subquery that exists": (
        "select name from people p where exists (select 1 from cities c where c.city = p.city)",
        {"name": "people.name ="},
        "cities.city FILTER people.city FILTER",
    ),
    "a value of a subquery": (
        "select id, (select max(land) from cities) as land from people",
        {"id": "people.id =", "land": "cities.land +"},
        "",
    ),
    "a named query": (
        "with old as (select id, age * 2 as twice from people where age > 3) select a.twice from old a join old b on a.id = b.id",
        {"twice": "people.age ~"},
        "people.age FILTER people.id JOIN",
    ),
    "rows from a list": (
        "select id, tag from people lateral view explode(tags) t as tag",
        {"id": "people.id =", "tag": "people.tags ~"},
        "",
    ),
    "a pivot": (
        "select * from (select city, name, age from people) pivot (sum(age) for name in ('a', 'b'))",
        {"city": "people.city =", "a": "people.age + people.name CONDITIONAL", "b": "people.age + people.name CONDITIONAL"},
        "people.city GROUP_BY people.name GROUP_BY",
    ),
    "an unpivot": (
        "select kind, word from people unpivot (word for kind in (name, city))",
        {"kind": "", "word": "people.city = people.name ="},
        "people.city FILTER people.name FILTER",  # nulls are left out
    ),
    "a view": ("select old.age from old", {"age": "people.age ~"}, "people.age FILTER"),
}
EXTRA = ("using",)  # only its rows are looked at


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """``people`` and ``cities`` as Parquet, and a view of one of them."""
    folder = tmp_path_factory.mktemp("lineage")
    people = "id long, name string, age int, city string, tags array<string>"
    spark.createDataFrame([(1, "a", 2, "x", ["t"])], people).write.parquet(f"{folder}/people")
    spark.createDataFrame([("x", "y")], "city string, land string").write.parquet(f"{folder}/cities")
    for name in ("people", "cities"):
        spark.read.parquet(f"{folder}/{name}").createOrReplaceTempView(name)
    spark.sql("select id, age + 1 as age from people where age > 1").createOrReplaceTempView("old")
    yield folder
    for name in ("people", "cities", "old"):
        spark.catalog.dropTempView(name)


def output_of(frame: DataFrame) -> dict[str, Any]:
    """The output of an event, if the rows of ``frame`` went to a place."""
    told = read(frame._jdf.queryExecution().analyzed())
    assert told is not None
    columns = columns_of(frame._jdf.schema())
    (output,) = datasets_of([replace(told, target=LineagePlace(Dataset("file", "/out")), columns=columns)])["outputs"]
    return output


def shown(fields: list[dict[str, Any]]) -> str:
    """As in SHAPES."""
    return " ".join(f"{Path(each['name']).name}.{each['field']} {said(how)}" for each in fields for how in each["transformations"])


def said(how: dict[str, Any]) -> str:
    masked = "#" if how["masking"] else ""
    return how["subtype"] if how["type"] == "INDIRECT" else SIGNS[how["subtype"]] + masked


@pytest.mark.parametrize("shape", SHAPES)
def test_a_column_comes_from_columns(spark: SparkSession, tables: Path, shape: str) -> None:
    """R-SP3: what is direct and what is indirect, through each shape of query."""
    text, columns, rows = SHAPES[shape]
    facet = output_of(spark.sql(text))["facets"]["columnLineage"]
    if shape not in EXTRA:
        assert {name: shown(each["inputFields"]) for name, each in facet["fields"].items()} == columns
    assert shown(facet.get("dataset", [])) == rows


def test_a_function_that_sees_rows_may_use_all_columns(spark: SparkSession, tables: Path) -> None:
    frame = spark.table("cities").mapInPandas(lambda batches: batches, "city string, land string")
    facet = output_of(frame)["facets"]["columnLineage"]
    every = "cities.city ~ cities.land ~"
    assert {name: shown(each["inputFields"]) for name, each in facet["fields"].items()} == {"city": every, "land": every}


def test_what_a_session_writes_is_told_when_it_ends(spark: SparkSession, tables: Path) -> None:
    """R-SP3: files, tables and a database, each once, whichever way they are written; a password is told nobody."""
    kept: list[tuple[str, dict[str, Any]]] = []
    url = f"jdbc:derby:memory:{tables.name};user=ann;password=s3cr3t"
    with lineage_told(spark, lambda kind, value: kept.append((kind, value))):
        people = spark.table("people")
        people.select("id", "city").write.partitionBy("city").parquet(f"{tables}/parts")
        people.groupBy("city").count().write.mode("overwrite").saveAsTable("counts")
        spark.sql("create table copies using parquet as select land from cities where city = 'x'")
        spark.sql("insert into copies select upper(name) from people")
        spark.table("cities").write.jdbc(f"{url};create=true", "lands")
        assert spark.read.jdbc(url, "lands").count() == 1
    spark.sql("drop table counts")
    spark.sql("drop table copies")
    ((kind, told),) = kept
    assert kind == "lineage"
    assert "s3cr3t" not in str(told)
    assert {Path(each["name"]).name for each in told["inputs"]} == {"people", "cities", "lands"}
    outputs = {Path(each["name"]).name: each["facets"] for each in told["outputs"]}
    assert outputs.keys() == {"parts", "counts", "copies", "lands"}
    columns = {
        output: {name: shown(each["inputFields"]) for name, each in facets["columnLineage"]["fields"].items()}
        for output, facets in outputs.items()
    }
    assert columns == {
        "parts": {"id": "people.id =", "city": "people.city ="},
        "counts": {"city": "people.city =", "count": ""},
        "copies": {"land": "cities.land = people.name ~"},
        "lands": {"city": "cities.city =", "land": "cities.land ="},
    }
    assert shown(outputs["copies"]["columnLineage"]["dataset"]) == "cities.city FILTER"
    assert outputs["copies"]["symlinks"]["identifiers"][0]["name"].endswith("default.copies")
    event = event_of({**TRY, "value": told}, "here")
    assert as_the_client_has_it(event) == full(event)


def test_a_frame_as_a_result_is_written_by_one_try_and_read_by_another(spark: SparkSession, tables: Path, tmp_path: Path) -> None:
    """R-SP3: the files of a result are a dataset like others, which joins the lineage of two tasks. That its rows are counted once
    more when they are written makes it no input.
    """
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    kept: list[tuple[str, dict[str, Any]]] = []
    with lineage_told(spark, lambda kind, value: kept.append((kind, value))):
        made = frames.write(spark.sql("select name, age + 1 as age from people where id > 0"), str(tmp_path), "a")
    with lineage_told(spark, lambda kind, value: kept.append((kind, value))):
        frames.write(frames.read(spark, made).groupBy("name").max("age"), str(tmp_path), "b")
    (first, second) = (told for _, told in kept)
    assert [each["name"] for each in first["inputs"]] == [f"{tables}/people"]
    (output,) = first["outputs"]
    assert output["name"] == made.path
    fields = output["facets"]["columnLineage"]["fields"]
    assert {name: shown(each["inputFields"]) for name, each in fields.items()} == {"name": "people.name =", "age": "people.age ~"}
    assert shown(output["facets"]["columnLineage"]["dataset"]) == "people.id FILTER"
    assert [each["name"] for each in second["inputs"]] == [made.path]
    fields = second["outputs"][0]["facets"]["columnLineage"]["fields"]
    assert {name: shown(each["inputFields"]) for name, each in fields.items()} == {"name": "a.name =", "max(age)": "a.age +"}


def test_a_session_that_reads_nothing_tells_nothing(spark: SparkSession) -> None:
    kept: list[str] = []
    with lineage_told(spark, lambda kind, value: kept.append(kind)):
        assert spark.range(3).count() == 3
    assert kept == []


@pytest.mark.parametrize(
    ("address", "namespace", "name"),
    [
        ("file:/data/x", "file", "/data/x"),
        ("s3a://key:secret@lake/a/b", "s3://lake", "a/b"),
        ("gs://lake/a", "gs://lake", "a"),
        ("file:/data/x/day=2026-01-31", "file", "/data/x"),
        ("s3a://lake/a/country=de/day=2026-01-31/", "s3://lake", "a"),
        ("hdfs://name:8020/a=1/b", "hdfs://name:8020", "/a=1/b"),
        ("hdfs://name:8020/a/b", "hdfs://name:8020", "/a/b"),
        ("abfss://box@account.dfs.core.windows.net/a", "abfss://box@account.dfs.core.windows.net", "a"),
    ],
)
def test_files_are_named_as_openlineage_does(address: str, namespace: str, name: str) -> None:
    assert of_path(address) == (namespace, name)


@pytest.mark.parametrize(
    ("url", "table", "expected"),
    [
        ("jdbc:postgresql://db/sales?user=a&password=b", "orders", ("postgres://db:5432", "sales.public.orders")),
        ("jdbc:postgresql://a:b@db:5433/sales", 'shop."orders"', ("postgres://db:5433", "sales.shop.orders")),
        ("jdbc:mysql://db/sales", "orders", ("mysql://db:3306", "sales.orders")),
        ("jdbc:oracle://db:1521/x", "t", ("oracle://db:1521", "x.t")),
        ("jdbc:postgresql://db/sales", "(select 1) as x", None),
        ("jdbc:postgresql://a:s3cr3t@h1:5432,h2:5432/db", "t", ("postgres://h1:5432,h2:5432", "db.public.t")),
        ("jdbc:oracle:thin:scott/s3cr3t@//h:1521/x", "t", ("oracle:thin:@//h:1521/x", "t")),
        ("jdbc:oracle:thin:scott/s3cr3t@h:1521:x", "t", ("oracle:thin:@h:1521:x", "t")),
        ("jdbc:oracle:thin:@h:1521:x", "t", ("oracle:thin:@h:1521:x", "t")),
        ("jdbc:mysql:loadbalance://u:s3cr3t@h1,h2/db", "t", ("mysql:loadbalance://h1,h2/db", "t")),
        ("jdbc:mysql://(host=h,user=u,password=s3cr3t)/db", "t", ("mysql://(host=h", "t")),
        ("jdbc:mysql://address=(host=h)(password=s3cr3t)/db", "t", ("mysql://address=(host=h)", "t")),
        ("jdbc:db2://h:50000/DB:password=s3cr3t;user=u;", "t", ("db2://h:50000", "DB.t")),
        ("jdbc:teradata://h/DATABASE=x,USER=u,PASSWORD=s3cr3t", "t", ("teradata://h", "DATABASE=x.t")),
        ("jdbc:sqlite:/a/b.db", "t", ("sqlite:/a/b.db", "t")),
    ],
)
def test_tables_are_named_as_openlineage_does(url: str, table: str, expected: tuple[str, str] | None) -> None:
    assert of_jdbc(url, table) == expected


def test_rows_of_the_program_are_of_no_dataset(spark: SparkSession, tables: Path) -> None:
    frame = spark.createDataFrame([("x",)], "city string").join(spark.table("cities"), "city")
    told = read(frame._jdf.queryExecution().analyzed())
    assert told is not None
    (only,) = datasets_of([told])["inputs"]
    assert (only["namespace"], only["name"]) == ("file", str(tables / "cities"))
    assert [each["name"] for each in only["facets"]["schema"]["fields"]] == ["city", "land"]
