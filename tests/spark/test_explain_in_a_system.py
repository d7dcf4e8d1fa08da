"""What people see of real tries on a local Spark, by ``evenflow spark explain`` and in the web UI: while they run, when they have
ended, and one against another (R-SP3).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.running import RunningEvenflow, evenflow_json, running_evenflow
from tests.spark.servers import BEGINS_S
from tests.ui.browsing import WITHIN_MS, logged_in, violations
from tests.waiting import wait_until

pytestmark = pytest.mark.spark
expect.set_options(timeout=WITHIN_MS)

# Nine of ten orders are of one customer, whose task goes on until the file `go` is there.
SKEWED = """
from evenflow import DAG, task

with DAG("skewed"):

    @task.spark(retries=1, retry_delay=0)
    def count(*, spark, ti=None) -> int:
        keys = ["customer"] if ti.try_number == 1 else ["customer", "id"]
        waits = ti.try_number == 1

        def orders(batches):
            import os, time

            for batch in batches:
                while waits and (batch.customer == 0).any() and not os.path.exists({go!r}):
                    time.sleep(0.05)
                yield batch

        rows = spark.range(0, 20_000, 1, 4).selectExpr("if(id % 10 > 0, 0, id) as customer", "id")
        counted = rows.repartition(8, *keys).mapInPandas(orders, "customer long, id long").count()
        assert not waits, "the first try fails when all is done"
        return counted

    count()
"""
SUBMITTED = """
from evenflow import DAG, SparkSubmit

with DAG("submitted"):
    SparkSubmit(task_id="app", application="app.py", args=[{go!r}])
"""
APPLICATION = """
import os, sys, time
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
go = sys.argv[1]

def waiting(batches):
    for batch in batches:
        while 0 in batch.id.values and not os.path.exists(go):
            time.sleep(0.05)
        yield batch

assert spark.range(0, 100, 1, 4).repartition(3, "id").mapInPandas(waiting, "id long").count() == 100
spark.stop()
"""


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEvenflow]:
    connection = f"spark-local://?cores=2&evidence={tmp_path_factory.mktemp('evidence')}"
    with running_evenflow(EVENFLOW_CONN_SPARK_DEFAULT=connection) as running:
        (running.dags / "app.py").write_text(APPLICATION)
        for name, text in (("skewed", SKEWED), ("submitted", SUBMITTED)):
            (running.dags / f"{name}.py").write_text(text.format(go=str(running.home / f"go-{name}")))
        wait_until(lambda: len(evenflow_json(running.home, "dags", "list")["dags"]) >= 2, lambda: running.log)
        yield running


@pytest.fixture
def page(system: RunningEvenflow, browser: Browser) -> Page:
    return logged_in(browser, system)


def triggered(system: RunningEvenflow, dag: str) -> str:
    run: str = evenflow_json(system.home, "runs", "trigger", dag)["run_id"]
    return f"{dag}/{run}"


def state(system: RunningEvenflow, run: str) -> str:
    (row,) = evenflow_json(system.home, "tasks", "list", run)["tasks"]
    return f"{row['state']} {row['try_number']}"


def explained(system: RunningEvenflow, *arguments: str) -> dict[str, Any] | None:
    """None while nothing is told."""
    done = system.evenflow("spark", "explain", *arguments, "--json")
    return json.loads(done.stdout) if done.returncode == 0 else None


def tasks_done(told: dict[str, Any] | None) -> list[tuple[int, int]]:
    return [] if told is None else [(stage["done_tasks"], stage["tasks"]) for stage in told["application"]["stages"]]


def test_two_tries_of_a_skewed_job_are_explained_and_compared(system: RunningEvenflow, page: Page) -> None:
    run = triggered(system, "skewed")
    wait_until(lambda: state(system, run) == "running 1", lambda: system.log)
    early = system.evenflow("spark", "explain", run, "count")
    assert early.returncode != 0
    assert "Try 1 of count runs, and has told no stages of Spark so far. They are told every 5 s" in early.stderr
    wait_until(lambda: (7, 8) in tasks_done(explained(system, run, "count")), lambda: system.log, within_s=BEGINS_S)
    live = system.evenflow("spark", "explain", run, "count").stdout
    assert "It runs, and these are its stages so far" in live
    assert "7 of 8" in live
    (system.home / "go-skewed").touch()
    wait_until(lambda: state(system, run) == "success 2", lambda: system.log, within_s=BEGINS_S)
    first = explained(system, run, "count", "--try", "1")
    assert first is not None
    assert not first["runs"]
    assert (8, 8) in tasks_done(first)
    skew = next(each for each in first["advice"] if each["text"].startswith("Skew: its longest task took"))
    assert "Rows are spread by customer: few of its values have most rows" in skew["text"]
    assert int(skew["conf"]["spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes"]) > 0
    both = explained(system, run, "count", "--try", "2", "--against", "1")
    assert both is not None
    assert not [each for each in both["advice"] if each["text"].startswith("Skew")]
    slowest = max(first["application"]["stages"], key=lambda stage: float(stage["wall_s"]))
    assert any(slowest["name"] in sentence and sentence.startswith("Stage ") for sentence in both["changes"]), both["changes"]
    said = system.evenflow("spark", "explain", run, "count", "--against", "1").stdout
    assert all(sentence in said for sentence in both["changes"])
    page.goto(f"/dags/skewed/runs/{run.partition('/')[2]}/tasks/count?tab=spark&try=1")
    expect(page.locator(".advice").first).to_contain_text("Rows are spread by customer")
    expect(page.get_by_role("row", name="count by customer").first).to_be_visible()
    assert violations(page) == []


def test_an_application_that_is_submitted_tells_its_stages_too(system: RunningEvenflow, page: Page) -> None:
    """Without a Spark UI, and although it stops its session itself."""
    run = triggered(system, "submitted")
    wait_until(lambda: (2, 3) in tasks_done(explained(system, run, "app")), lambda: system.log, within_s=BEGINS_S)
    live = explained(system, run, "app")
    assert live is not None
    assert (live["runs"], live["try_number"]) == (True, 1)
    page.goto(f"/dags/submitted/runs/{run.partition('/')[2]}/tasks/app")
    page.get_by_role("link", name="Spark", exact=True).click()
    expect(page.get_by_text("So far, as told")).to_be_visible()
    expect(page.get_by_role("row", name="2 of 3")).to_be_visible()
    assert violations(page) == []
    (system.home / "go-submitted").touch()
    wait_until(lambda: state(system, run) == "success 1", lambda: system.log)
    told = explained(system, run, "app")
    assert told is not None
    assert not told["runs"]
    assert (3, 3) in tasks_done(told)
    expect(page.get_by_text("So far, as told")).to_have_count(0)  # without a reload
    expect(page.get_by_role("row", name="2 of 3")).to_have_count(0)
    assert next(stage["keys"] for stage in told["application"]["stages"] if stage["shuffle_read_bytes"]) == ["id"]
