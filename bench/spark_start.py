"""spark_warm and spark_cold: from the start of a task to its first row, on a Spark Connect server of ``evenflow up`` that is warm,
and on a local Spark of the task's own. Tasks follow one another: 20 of the first, 5 of the second. The first of all is not counted:
it loads the DAG file, too.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from tests.running import RunningEvenflow, evenflow_json, running_evenflow
from tests.waiting import wait_until

WARM, COLD = "spark_warm", "spark_cold"
TASKS = {WARM: 20, COLD: 5}
BARS_S = {WARM: {"median": 1.0, "p95": 2.0}, COLD: {"median": 8.0}}
RUN_WITHIN_S, WARM_WITHIN_S = 300.0, 300.0

DAG_FILE = """
import time
from evenflow import dag, task

@dag(schedule=None)
def rows():
    @task.spark
    def first_row(*, spark):
        spark.range(3).collect()
        return time.time()

    first_row()

rows()
"""


def run(case: str) -> Iterator[dict[str, Any]]:
    options = ("--spark-connect",) if case == WARM else ()
    if case == COLD:
        from evenflow.spark.archive import main

        main()
    with running_evenflow(None, *options, EVENFLOW_SPARK_CONNECT_PORT="0") as system:
        (system.dags / "rows.py").write_text(DAG_FILE)
        wait_until(lambda: evenflow_json(system.home, "dags", "list")["dags"], lambda: system.log, within_s=120)
        if case == WARM:
            wait_until(lambda: "the Spark Connect server is warm" in system.log, lambda: system.log, within_s=WARM_WITHIN_S)
        _start_to_row_s(system)
        spans = [_start_to_row_s(system) for _ in range(TASKS[case])]
    figures = {"median": round(statistics.median(spans), 3), "p95": round(statistics.quantiles(spans, n=20)[-1], 3)}
    ok = all(figures[name] <= bar for name, bar in BARS_S[case].items())
    yield {"ok": ok, "tasks": len(spans), "start_to_row_s": figures, "bars_s": BARS_S[case]}


def _start_to_row_s(system: RunningEvenflow) -> float:
    """Of a run of one task: the try starts when its worker says so, and has a row when the author's code does."""
    run_id = evenflow_json(system.home, "runs", "trigger", "rows")["run_id"]

    def ended() -> dict[str, Any] | None:
        (row,) = evenflow_json(system.home, "tasks", "list", f"rows/{run_id}")["tasks"]
        return row if row["state"] in ("success", "failed") else None

    row = wait_until(ended, lambda: system.log, within_s=RUN_WITHIN_S)
    assert row is not None
    assert row["state"] == "success", row
    at: float = evenflow_json(system.home, "xcoms", "show", f"rows/{run_id}", "first_row")["value"]
    return at - datetime.fromisoformat(row["started_at"]).timestamp()
