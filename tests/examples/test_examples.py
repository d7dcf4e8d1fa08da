"""The examples that the documentation shows do what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenflow.core.states import RunState, TaskState
from tests.examples.conftest import EXAMPLES, LoadDag

COVERED = ["hello", "import_census", "mapped_etl", "retries", "shell", "spark_words", "task_groups", "trigger_rules", "wfformat"]


def test_every_example_has_a_test() -> None:
    assert sorted(path.stem for path in EXAMPLES.glob("*.py")) == [*COVERED, "wfformat_sample"]


def test_hello(load_dag: LoadDag) -> None:
    run = load_dag("hello.py", "hello").test(params={"name": "Ada"})
    assert run.result("shout") == "HELLO, ADA!"


def test_mapped_etl(load_dag: LoadDag, tmp_path: Path) -> None:
    run = load_dag("mapped_etl.py", "mapped_etl").test(params={"vat": 0.25, "folder": str(tmp_path)})
    run.raise_on_failure()
    assert json.loads((tmp_path / "totals.json").read_text()) == [
        {"shop": "Basel", "net": 79.8},
        {"shop": "Oslo", "net": 79.92},
        {"shop": "Porto", "net": 24.0},
        {"shop": "Riga", "net": 0.0},
    ]


def test_retries(load_dag: LoadDag) -> None:
    run = load_dag("retries.py", "retries").test()
    assert [(task.task_id, task.tries, task.state) for task in run.tasks] == [
        ("fetch", 3, TaskState.SUCCESS),
        ("check", 1, TaskState.SUCCESS),
    ]


def test_trigger_rules(load_dag: LoadDag) -> None:
    run = load_dag("trigger_rules.py", "trigger_rules").test()
    assert run.state is RunState.SUCCESS
    assert run.states == {
        "primary": TaskState.FAILED,
        "replica": TaskState.SUCCESS,
        "archive": TaskState.SKIPPED,
        "tell_someone": TaskState.SUCCESS,
        "publish": TaskState.SUCCESS,
        "clean_up": TaskState.SUCCESS,
    }


def test_task_groups(load_dag: LoadDag) -> None:
    run = load_dag("task_groups.py", "task_groups").test()
    assert run.result("total") == 9 * (len("north") + len("south") + len("east"))


def test_shell(load_dag: LoadDag, tmp_path: Path) -> None:
    for size in (10, 300, 2000, 40):
        (tmp_path / f"of_{size}").write_bytes(b"x" * size)
    run = load_dag("shell.py", "shell").test(params={"folder": str(tmp_path), "count": 2})
    run.raise_on_failure()
    assert run.result("largest_files") == f"300 {tmp_path}/of_300"
    missing = load_dag("shell.py", "shell").test(params={"folder": str(tmp_path / "nowhere")})
    assert missing.states == {
        "is_it_there": TaskState.FAILED,
        "largest_files": TaskState.UPSTREAM_FAILED,
        "tell": TaskState.UPSTREAM_FAILED,
    }


@pytest.mark.spark
def test_spark_words(load_dag: LoadDag, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SP1: without a connection the task runs on a local master."""
    monkeypatch.delenv("EVENFLOW_CONN_SPARK_DEFAULT", raising=False)
    run = load_dag("spark_words.py", "spark_words").test()
    run.raise_on_failure()
    assert run.result("count_words") == [("on", 3), ("the", 3), ("a", 2)]
