"""The whole census, on real Spark, over a tree small enough to know what must come out."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import urlencode

import pytest
from census import bronze, charts, gold, listing, quality, tables

from evenflow import Connection
from evenflow.core.states import RunState
from evenflow.sdk.loading.loader import load_file
from evenflow.sdk.local.outcome import RunOutcome
from evenflow.spark.session import session_for
from tests.examples.conftest import EXAMPLES

SHOP = {
    "shop/__init__.py": '"""A shop."""\nfrom . import stock\n',
    "shop/stock.py": "import json\nimport shop\nfrom shop.models import Item\n",
    "shop/models.py": "from dataclasses import dataclass\n\n\nclass Item:\n    def price(self):\n        from .till import tax\n",
    "shop/till.py": "import typing\nif typing.TYPE_CHECKING:\n    from .models import Item\nimport not_installed.at_all\n",
    "shop/broken.py": "def f(:\n",
    "shop/native.abi3.so": "",
    "other.py": "import shop.native, shop.models as m\nfrom shop import *\n",
    "run-me.py": "import shop\n",  # read, but no module
}
SHADOWED = {"shop/till.py": "import other\n"}  # the shop's own till is found first
EDGES = {  # (source, target): does it run on import?
    ("shop", "shop.stock"): True,
    ("shop.stock", "json"): True,
    ("shop.stock", "shop"): True,
    ("shop.stock", "shop.models"): True,
    ("shop.models", "dataclasses"): True,
    ("shop.models", "shop.till"): False,
    ("shop.till", "typing"): True,
    ("shop.till", "shop.models"): False,
    ("other", "shop.native"): True,
    ("other", "shop.models"): True,
    ("other", "shop"): True,
}

# To compile a plan takes longer than to run it over eight files.
UNCOMPILED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
}

pytestmark = pytest.mark.spark


def test_the_census_of_a_small_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One run, checked from all sides: its three JVMs are what costs."""
    roots = []
    for order, files in enumerate((SHOP, SHADOWED)):
        root = tmp_path / f"root{order}"
        roots.append(listing.Root(str(root), "packages", order))
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
    monkeypatch.setenv("EVENFLOW_CONN_SPARK_DEFAULT", f"spark-local://?{urlencode(UNCOMPILED)}")
    monkeypatch.setattr(listing, "find_roots", lambda extra: roots)
    monkeypatch.setattr(quality, "MOST_BAD", 0.2)  # one of eight is broken
    monkeypatch.setattr(bronze, "BATCHES", 2)
    lake = tmp_path / "lake"
    run = load_file(EXAMPLES / "import_census.py", EXAMPLES).dags["import_census"].test(params={"output": str(lake), "shards": 2})
    run.raise_on_failure()
    assert run.state is RunState.SUCCESS
    only_the_first_task_needs_a_second_try(run)
    bronze_counts_bad_files(run, lake)
    silver_is_the_import_graph(lake)
    gold_ranks_as_a_plain_power_iteration_does(run, lake)
    gold_knows_circles_of_imports_that_run_on_import(lake)
    the_report_is_one_file_and_its_path_is_the_result(run, lake)
    every_violated_check_is_named(lake)


def only_the_first_task_needs_a_second_try(run: RunOutcome) -> None:
    tries = {task.task_id: task.tries for task in run.tasks}
    assert [task_id for task_id, count in tries.items() if count > 1] == ["open_lake"]
    assert len(run.dag.task_dict) >= 8
    assert [task_id for task_id, task in run.dag.task_dict.items() if task.is_mapped] == ["list_files", "publish.draw_charts"]


def bronze_counts_bad_files(run: RunOutcome, lake: Path) -> None:
    assert run.result("parse_files") == {"ok": 7, "error": 1, "compiled": 1}
    [error] = tables.read(lake, "silver/errors")
    assert error["path"].endswith("shop/broken.py")
    assert (error["status"], error["reason"], error["error_line"]) == ("error", "SyntaxError: invalid syntax", 1)


def silver_is_the_import_graph(lake: Path) -> None:
    edges = tables.read(lake, "silver/edges")
    assert {(edge["source"], edge["target"]): edge["on_import"] for edge in edges} == EDGES
    assert tables.read(lake, "silver/unresolved") == [{"name": "not_installed", "modules": 1, "statements": 1}]


def gold_ranks_as_a_plain_power_iteration_does(run: RunOutcome, lake: Path) -> None:
    nodes = [row["module"] for row in tables.read(lake, "silver/modules", ["module"])]
    targets = {node: [target for source, target in EDGES if source == node] for node in nodes}
    ranks = dict.fromkeys(nodes, 1 / len(nodes))
    for _ in range(run.result("rank_modules")["rounds"]):
        sunk = sum(rank for node, rank in ranks.items() if not targets[node])
        taken = dict.fromkeys(nodes, (1 - gold.DAMPING + gold.DAMPING * sunk) / len(nodes))
        for node, found in targets.items():
            for target in found:
                taken[target] += gold.DAMPING * ranks[node] / len(found)
        ranks = taken
    stored = {row["module"]: row["rank"] for row in tables.read(lake, "gold/modules", ["module", "rank"])}
    assert stored == pytest.approx(ranks, abs=1e-12)


def gold_knows_circles_of_imports_that_run_on_import(lake: Path) -> None:
    assert tables.read(lake, "gold/cycles") == [{"modules": 2, "first": "shop", "example": ["shop", "shop.stock", "shop"]}]
    depth = {row["module"]: row["depth"] for row in tables.read(lake, "gold/depths")}
    assert [depth[module] for module in ("json", "shop.till", "shop.models", "shop.stock", "shop", "other")] == [0, 1, 1, 2, 2, 3]


def the_report_is_one_file_and_its_path_is_the_result(run: RunOutcome, lake: Path) -> None:
    assert run.result("publish.write_report") == str(lake / "report.html")
    text = (lake / "report.html").read_text()
    assert "prefers-color-scheme: dark" in text
    assert text.count("data:image/png;base64,") == 2 * len(charts.CHARTS)
    assert "http" not in text
    assert "shop/broken.py" in text
    assert (lake / "report.png").read_bytes().startswith(b"\x89PNG")


def every_violated_check_is_named(lake: Path) -> None:
    edges = tables.read(lake, "silver/edges")
    shutil.rmtree(lake / "silver" / "edges")
    tables.write(lake, "silver/edges", [*edges, {**edges[0], "target": "nowhere"}, {**edges[0], "target": edges[0]["source"]}])
    with pytest.raises(quality.DataQualityError) as caught:
        quality.check_lake(lake, listed=10)
    assert str(caught.value) == (
        "3 of 13 checks failed: bronze has every listed file (9 of 10); both ends of every edge are modules (1 of 13 are not); "
        "no module imports itself (1 do)"
    )


def test_a_limit_reads_a_sample_that_is_the_same_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bronze, "BATCHES", 2)
    for number in range(8):
        (tmp_path / "root").mkdir(exist_ok=True)
        (tmp_path / "root" / f"m{number}.py").write_text("")
    listing.write_shard(tmp_path, [listing.Root(str(tmp_path / "root"), "packages", 0)], 0, 1)
    conf = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        **UNCOMPILED,
    }  # Java's as the tasks have it
    samples = []
    with session_for(Connection.parse("local", "local[1]"), app_name="sample", conf=conf, progress=lambda *_: None) as spark:
        for _ in range(2):
            assert bronze.parse_files(spark, tmp_path, limit=3) == {"ok": 3, "unread": 5}
            rows = tables.read(tmp_path, "bronze/files", ["path", "status"])
            samples.append({row["path"] for row in rows if row["status"] == "ok"})
    assert samples[0] == samples[1]
