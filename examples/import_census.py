"""A census of Python: every source file of this environment, who imports whom, and on which modules all the others rest.

A PySpark pipeline over input that every machine has. Files are listed in parallel (a mapped task), parsed on Spark (bronze), turned
into an import graph (silver) and ranked by PageRank (gold). A task of its own checks the data before charts are drawn and
``report.html`` and ``report.png`` are written. Everything lands under ``output``; by default that is ``.evenflow/census/RUN_ID``
where the worker runs, or a folder in the system's temporary directory if there is no ``.evenflow``.

    evenflow run examples/import_census.py
    evenflow run examples/import_census.py --param limit=500
"""

from __future__ import annotations

import platform
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from census import bronze, charts, cycles, gold, insights, listing, quality, report, silver

import evenflow
from evenflow import Param, TaskGroup, dag, task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from evenflow import TaskInstance

# Three short JVMs: with the quick compiler and the simple collector each takes 40 % less CPU than with the defaults.
SHORT_LIVED = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
# Ten thousand modules: to plan a query again while it runs costs more than the query, and so do more partitions.
SMALL_GRAPH = {**SHORT_LIVED, "spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "2"}


class StorageNotReady(Exception):
    """What a network mount may say for a moment after it was attached."""


@task(retries=2, retry_delay=1)
def open_lake(output: str, run_id: str, ti: TaskInstance) -> str:
    """Makes the output folder and proves that it can be written and read.

    The first try fails on purpose, in place of the flaky storage of real life: a retry follows a second later and succeeds.
    """
    if ti.try_number == 1:
        raise StorageNotReady("Simulated: the first try finds the storage not ready, so that you can watch a retry.")
    home = Path(".evenflow") if Path(".evenflow").is_dir() else Path(tempfile.gettempdir(), "evenflow")
    lake = Path(output or home / "census" / run_id.replace(":", "-")).resolve()
    lake.mkdir(parents=True, exist_ok=True)
    probe = lake / "probe"
    probe.write_text(run_id)
    assert probe.read_text() == run_id, f"{lake} does not give back what was written to it"
    probe.unlink()
    return str(lake)


@task
def plan_listing(shards: int) -> list[dict[str, Any]]:
    """Finds the folders that Python imports from, and divides the work."""
    roots = listing.find_roots(extra=[str(Path(evenflow.__file__).parents[1])])
    for root in roots:
        print(f"{root.kind:9} {root.path}")
    return [{"roots": [asdict(root) for root in roots], "part": part, "of": shards} for part in range(shards)]


@task
def list_files(lake: str, shard: dict[str, Any]) -> dict[str, int]:
    """Lists one shard of the files."""
    roots = [listing.Root(**root) for root in shard["roots"]]
    return listing.write_shard(Path(lake), roots, shard["part"], shard["of"])


@task.spark(conf=SHORT_LIVED)
def parse_files(spark: SparkSession, lake: str, listed: list[dict[str, int]], limit: int | None) -> dict[str, int]:
    """Bronze: parses every file. A file that cannot be parsed is counted, and is no error."""
    print(f"{sum(shard['files'] for shard in listed):,} files, {sum(shard['bytes'] for shard in listed) / 1e6:,.0f} MB")
    statuses = bronze.parse_files(spark, Path(lake), limit)
    print(statuses)
    return statuses


@task.spark(conf=SMALL_GRAPH)
def build_graph(spark: SparkSession, lake: str, parsed: dict[str, int]) -> dict[str, int]:
    """Silver: resolves every import to a module, and keeps what could not be resolved or read."""
    counts = silver.build_graph(spark, Path(lake))
    print(f"{sum(parsed.values()):,} files became {counts}")
    return counts


@task.spark(conf=SMALL_GRAPH)
def rank_modules(spark: SparkSession, lake: str, graph: dict[str, int]) -> dict[str, Any]:
    """Gold: PageRank over the import graph, and what it says of packages."""
    print(f"{graph['modules']:,} modules, {graph['edges']:,} edges")
    return gold.rank_modules(spark, Path(lake), lambda turn, change: print(f"round {turn}: moved {change:.2g}", flush=True))


@task
def find_cycles(lake: str, graph: dict[str, int]) -> dict[str, Any]:
    """Gold: circles of imports, and how deep imports go."""
    found = cycles.find_cycles(Path(lake))
    print(f"{graph['modules']:,} modules: {found}")
    return found


@task(retries=0)
def check_quality(lake: str, listed: list[dict[str, int]]) -> int:
    """Fails, naming every violated check, unless the layers agree with each other."""
    checks = quality.check_lake(Path(lake), sum(shard["files"] for shard in listed))
    for check in checks:
        print(f"passed: {check.name} ({check.found})")
    return len(checks)


@task
def draw_charts(lake: str, theme: str) -> dict[str, str]:
    """Draws every chart in one theme."""
    return charts.draw_charts(insights.read_insights(Path(lake)), charts.THEMES[theme], Path(lake) / "charts")


@task
def draw_sheet(lake: str) -> str:
    """Draws ``report.png``."""
    return str(charts.draw_sheet(insights.read_insights(Path(lake)), charts.LIGHT, Path(lake) / "report.png"))


@task
def write_report(lake: str, drawn: list[dict[str, str]], sheet: str, run_id: str) -> str:
    """Writes ``report.html``, and prints where it is."""
    facts = {"run": run_id, "Python": platform.python_version(), "at": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"}
    by_theme = dict(zip(charts.THEMES, drawn, strict=True))
    path = report.write_report(insights.read_insights(Path(lake)), by_theme, facts, Path(lake) / "report.html")
    print(f"Report: {path}\nOn one sheet: {sheet}")
    return str(path)


@dag(tags=["example", "spark"], default_args={"retries": 1, "retry_delay": 2, "execution_timeout": 600})
def import_census(
    limit: int | None = Param(None, type=["integer", "null"], minimum=1, description="Read at most so many files; empty: all."),
    output: str = Param("", type="string", description="Folder for all data and the report."),
    shards: int = Param(8, type="integer", minimum=1, maximum=64, description="In how many parts files are listed."),
) -> None:
    lake = open_lake(output)
    listed = list_files.partial(lake=lake).expand(shard=plan_listing(shards))
    graph = build_graph(lake, parse_files(lake, listed, limit))
    checked = check_quality(lake, listed)
    [rank_modules(lake, graph), find_cycles(lake, graph)] >> checked
    with TaskGroup("publish") as publish:
        write_report(lake, draw_charts.partial(lake=lake).expand(theme=list(charts.THEMES)), draw_sheet(lake))
    checked >> publish


import_census()
