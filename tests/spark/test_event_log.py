"""What the event log of an application says of its stages, read while Spark writes it (R-SP3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenflow.spark import status
from evenflow.spark.submitted.event_log import FOLDER, LogTelling, RolledFiles, SeenApplication, options

BEGUN_MS = 1_700_000_000_000
PLAN = "Exchange hashpartitioning(kind#7L, 4), ENSURE_REQUIREMENTS"


def stage(number: int, ended_ms: int | None = None) -> dict[str, Any]:
    info = {"Stage ID": number, "Stage Attempt ID": 0, "Stage Name": "count at Job.java:7", "Number of Tasks": 3}
    ended = {} if ended_ms is None else {"Completion Time": BEGUN_MS + ended_ms}
    kind = "Submitted" if ended_ms is None else "Completed"
    return {"Event": f"SparkListenerStage{kind}", "Stage Info": {**info, "Submission Time": BEGUN_MS + 1000, **ended}}


def task(number: int, run_ms: int, *, reason: str = "Success", read: int = 0) -> dict[str, Any]:
    shuffled = {"Remote Bytes Read": read, "Local Bytes Read": 1}
    metrics = {"Executor Run Time": run_ms, "JVM GC Time": 10, "Disk Bytes Spilled": 5, "Shuffle Read Metrics": shuffled}
    which = {"Stage ID": number, "Stage Attempt ID": 0}
    return {"Event": "SparkListenerTaskEnd", **which, "Task End Reason": {"Reason": reason}, "Task Metrics": metrics}


def begun(number: int) -> dict[str, Any]:
    return {"Event": "SparkListenerTaskStart", "Stage ID": number, "Stage Attempt ID": 0}


BEGIN = [
    {"Event": "SparkListenerApplicationStart", "App ID": "app-1", "Timestamp": BEGUN_MS},
    {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": {"spark.master": "spark://m", "spark.executor.memory": "2g"}},
    {"Event": "SparkListenerExecutorAdded", "Executor ID": "0", "Executor Info": {"Total Cores": 3}},
    {
        "Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart",
        "executionId": 4,
        "description": "counts kinds",
        "physicalPlanDescription": PLAN,
    },
    {"Event": "SparkListenerJobStart", "Stage IDs": [8], "Properties": {"spark.sql.execution.id": "4"}},
    stage(8),
]
END = [
    stage(8, ended_ms=5000),
    {"Event": "SparkListenerBlockManagerRemoved"},
    {"Event": "SparkListenerApplicationEnd", "Timestamp": BEGUN_MS + 9000},
]


def test_a_stage_has_the_figures_of_its_tasks() -> None:
    seen = SeenApplication()
    tasks = [begun(8), begun(8), begun(8), task(8, 100, read=9), task(8, 700), task(8, 50, reason="ExceptionFailure")]
    for event in [*BEGIN, *tasks, *END]:
        seen.take(event)
    figures, cost = seen.figures(status)
    (only,) = figures.stages
    assert (figures.application_id, figures.is_local, figures.cores, figures.memory_mib) == ("app-1", False, 3, 2048)
    assert (only.stage_id, only.tasks, only.done_tasks, only.failed_tasks, only.active_tasks) == (8, 3, 2, 1, 0)
    assert (only.wall_s, only.run_s, only.median_task_s, only.longest_task_s) == (4.0, 0.85, 0.1, 0.7)
    assert (only.shuffle_read_bytes, only.most_read_bytes, only.spilled_disk_bytes) == (12, 10, 15)
    assert only.keys == ("kind",)
    assert (cost.wall_s, cost.run_s, cost.gc_s, cost.stages) == (9.0, 0.85, 0.03, 1)


def test_a_log_is_read_once_and_its_files_go_when_the_next_one_is_there(tmp_path: Path) -> None:
    """Also when the reader comes in the middle of a line."""
    log, files = tmp_path / "eventlog_v2_app-1", RolledFiles(tmp_path)
    assert list(files.lines()) == []
    log.mkdir()
    lines = [json.dumps(event) + "\n" for event in (*BEGIN, begun(8), task(8, 100), task(8, 300), *END)]
    (log / "events_1_app-1").write_text("".join(lines[:7]) + lines[7][:20])
    assert len(list(files.lines())) == 7
    (log / "events_1_app-1").write_text("".join(lines[:8]))
    (log / "events_2_app-1").write_text("".join(lines[8:]))
    assert next(files.lines()) == lines[7].encode()
    assert [line.decode() for line in files.lines()] == lines[8:]
    assert [file.name for file in log.iterdir()] == ["events_2_app-1"]
    assert list(files.lines()) == []


def test_what_is_read_is_kept_at_the_end(tmp_path: Path) -> None:
    kept: list[dict[str, Any]] = []
    telling = LogTelling(tmp_path, {}, status, kept.append)
    log = tmp_path / FOLDER / "eventlog_v2_app-1"
    log.mkdir()
    (log / "events_1_app-1").write_text("".join(json.dumps(event) + "\n" for event in (*BEGIN, task(8, 100), *END)))
    assert telling.end() == {"application_id": "app-1"}
    assert kept[-1]["stages"]["stages"][0]["run_s"] == 0.1
    assert kept[-1]["cost"]["cores"] == 3


@pytest.mark.parametrize(("said", "ours"), [("spark.eventLog.enabled  true", False), ("# spark.eventLog.enabled true", True)])
def test_an_event_log_of_the_host_stays_where_it_is(tmp_path: Path, said: str, ours: bool) -> None:
    """A history server looks for it there."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(f"spark.ui.port 1\n{said}\n")
    assert bool(options(tmp_path, {"SPARK_HOME": str(tmp_path)})) == ours
