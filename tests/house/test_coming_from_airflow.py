"""What "Coming from Airflow" says is so: its names can be imported, its commands exist, and a DAG moves by its import lines."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from evenflow.cli.app import build_app
from evenflow.sdk.loading.loader import load_file
from evenflow.sdk.loading.missing_modules import airflow_imports
from evenflow.testing import DagRunner

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "coming-from-airflow.md"
MOVED = Path(__file__).parents[1] / "examples" / "as_for_airflow.py"
TEXT = PAGE.read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(from airflow.*?)` \| `(from .*?)`", TEXT, flags=re.MULTILINE)
COMMANDS = sorted(set(re.findall(r"`(evenflow .*?)`", TEXT)))


def names_of(line: str) -> list[str]:
    return line.partition(" import ")[2].split(", ")


@pytest.mark.parametrize(("theirs", "ours"), ROWS)
def test_import_line(theirs: str, ours: str) -> None:
    exec(ours, {})
    assert names_of(theirs) == names_of(ours) or "EmailOperator" in theirs


def test_there_are_import_lines() -> None:
    assert len(ROWS) >= 30


@pytest.mark.parametrize("command", COMMANDS)
def test_command_is_known(command: str) -> None:
    build_app().parse_args(shlex.split(command)[1:], print_error=False, exit_on_error=False)


def test_a_dag_moves_by_its_import_lines(tmp_path: Path) -> None:
    """Each name is looked up in the table of the page; all else of the file stays as it is."""
    modules: dict[str, dict[str, str]] = {}
    for theirs, ours in ROWS:
        for name in names_of(theirs):
            modules.setdefault(theirs.split()[1], {})[name] = ours.split()[1]

    def moved(line: re.Match[str]) -> str:
        return "\n".join(f"from {modules[line[1]][name]} import {name}" for name in re.findall(r"\w+", line[2]))

    text = re.sub(r"^from (airflow\S*) import (\([^)]*\)|.*)$", moved, MOVED.read_text(encoding="utf-8"), flags=re.MULTILINE)
    file = tmp_path / "orders.py"
    file.write_text(text, encoding="utf-8")
    dag = load_file(file, tmp_path).dags["orders"]
    outcome = DagRunner(dag, now=datetime(2026, 2, 1, tzinfo=UTC))()
    outcome.raise_on_failure()
    assert outcome.states == {
        "begin": "success",
        "announce": "success",
        "stocked": "success",
        "opened": "success",
        "make_scratch": "success",
        "find_shops": "success",
        "of_shop.fetch": ["success"] * 3,
        "of_shop.check": ["success", "success", "skipped"],
        "how_many": "success",
        "reports.small": "success",
        "reports.large": "skipped",
        "publish": "success",
        "remove_scratch": "success",
    }
    assert outcome.result("stocked") == "shop-3"
    assert outcome.result("announce") == "2026-02-01 3 2026-02-02"
    assert (outcome.tries("of_shop.fetch", 1), outcome.elapsed) == (2, timedelta(minutes=5))


@pytest.mark.parametrize(("theirs", "ours"), [row for row in ROWS if "EmailOperator" not in row[0]])
def test_checks_say_what_the_page_says(theirs: str, ours: str) -> None:
    """R-CS10: ``dags check`` answers each of these lines with the other one."""
    assert [each.instead for each in airflow_imports(theirs.encode())] == [
        f"from evenflow import timezone, then timezone.{names_of(theirs)[0]}" if theirs.split()[1].endswith(".timezone") else ours
    ]
