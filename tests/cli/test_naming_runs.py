"""How runs are named, in every command alike; what asks before it deletes; and what says numbers of things."""

from __future__ import annotations

import re

import pytest

from evenflow.cli.input.dates import end_of
from evenflow.core.quantities import counted
from evenflow.errors import ParamError
from tests.cli.command_line import CommandLine
from tests.waiting import wait_until


def of_any_moment(shown: object) -> str:
    """Without the time at which `runs watch` says it: the second may end in between."""
    return re.sub(r"^\d\d:\d\d:\d\d ", "", str(shown), flags=re.MULTILINE)


@pytest.mark.parametrize(
    "command", [("runs", "show"), ("runs", "events"), ("tasks", "list"), ("xcoms", "list"), ("runs", "watch")], ids=" ".join
)
def test_a_run_is_named_by_a_path_or_an_option(cli: CommandLine, command: tuple[str, ...]) -> None:
    one, other = cli(*command, "steered/unlucky"), cli(*command, "steered", "--run", "unlucky")
    assert [of_any_moment(shown) for shown in one] == [of_any_moment(shown) for shown in other]
    assert {"show": "unlucky", "events": "start", "list": "numbers", "watch": "check"}[command[-1]] in one[1]
    assert "Two runs are named, 'unlucky' and 'else'" in cli(*command, "steered/unlucky", "--run", "else")[2]


def test_so_is_the_run_of_a_task(cli: CommandLine) -> None:
    log = "counting to 9\n"
    assert log in cli.show("tasks", "logs", "steered/unlucky", "numbers")
    assert cli.show("why", "steered/unlucky", "numbers") == cli.show("why", "steered", "numbers", "--run", "unlucky")
    assert cli.show("why", "unlucky", "numbers") == cli.show("why", "steered/unlucky", "numbers")
    assert "check[7]" in cli.show("tasks", "clear", "steered/unlucky", "check", "--only", "failed", "--dry-run")
    assert cli.show("runs", "show", "steered", "unlucky") == cli.show("runs", "show", "steered/unlucky")


def test_a_date_will_do(cli: CommandLine) -> None:
    """R-UX1: where one run is meant by it."""
    for run_id, date in (
        ("early", "2031-05-01T06:00+00:00"),
        ("late", "2031-05-01T18:00+00:00"),
        ("lone", "2031-05-02T06:00+00:00"),
    ):
        cli.show("runs", "trigger", "steered", "--param", "count=1", "--run-id", run_id, "--logical-date", date)
        assert cli("runs", "watch", "steered", run_id)[0] == 0
    assert cli.show("runs", "show", "steered/2031-05-02") == cli.show("runs", "show", "steered/lone")
    assert "lone" in cli.show("runs", "clear", "steered", "2031-05-02", "--future", "--dry-run")
    assert cli.show("why", "steered/2031-05-02", "numbers") == cli.show("why", "2031-05-02", "numbers")
    assert "counting to 1" in cli.show("tasks", "logs", "steered", "numbers", "--run", "2031-05-01T20:00:00+02:00")
    several = "'2031-05-01' fits several runs: steered/early, steered/late. Type one of them, for example: steered/early"
    assert several in cli.refused("runs", "show", "steered/2031-05-01")
    assert several in cli.refused("why", "2031-05-01", "numbers")
    assert "has no run '2031-05-03'" in cli.refused("runs", "show", "steered/2031-05-03")
    assert "quarantine" in cli.refused("quarantine", "release", "run", "steered/2031-05-02")
    shown = cli.show("runs", "show", "steered/lone")
    assert re.search(r"logical date 2031-05-02 \d\d:00:00", shown)


def test_what_would_be_touched_is_counted_before_the_question(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-UX1"""
    assert cli("run", "steered", "--param", "count=50", "--run-id", "fifty")[0] == 1
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda question: "n")
    shown = cli.show("runs", "clear", "steered/fifty")
    assert (
        "... and 21 more. In all: 51 task instances of 1 run: 51 ended already. 50 of them are of mapped tasks.\nNothing was"
        in shown
    )


def test_tasks_are_listed_with_their_names_for_people(cli: CommandLine) -> None:
    assert "check[7]  Look for seven" in cli.show("tasks", "list", "steered/unlucky")


def test_notes(cli: CommandLine) -> None:
    def note(run: str) -> str | None:
        return cli.ask("runs", "show", run)["note"]  # type: ignore[no-any-return]

    cli.show("runs", "trigger", "steered", "--run-id", "noted")
    assert cli.show("runs", "note", "steered", "mind this") == "noted has a note\n"
    assert note("steered/noted") == "mind this"
    assert cli.show("runs", "note", "steered", "unlucky", "seven again") == "unlucky has a note\n"
    assert cli.show("runs", "note", "steered/noted", "else") == "noted has a note\n"
    assert (note("steered/unlucky"), note("steered/noted")) == ("seven again", "else")
    assert "'unlucky' is a run. Type the text too" in cli.refused("runs", "note", "steered", "unlucky")
    assert cli.show("runs", "note", "steered", "", "--run", "unlucky") == "unlucky has no note\n"
    assert "one text too many: 'b'" in cli.refused("runs", "note", "steered", "a", "b", "--run", "unlucky")


def test_deleting_asks_first(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("run", "steered", "--run-id", "short")
    assert "Name the run" in cli.refused("runs", "delete", "steered")
    assert "nobody to ask. Say --yes." in cli.refused("runs", "delete", "steered/short")
    assert "nobody to ask. Say --yes." in cli.refused("dags", "delete", "steered")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda question: "n")
    assert "Nothing was done." in cli.show("runs", "delete", "steered/short")
    monkeypatch.setattr("builtins.input", lambda question: "y")
    assert "short is deleted" in cli.show("runs", "delete", "steered", "short")
    assert "has no run 'short'" in cli.refused("runs", "show", "steered/short")


def test_a_dag_whose_file_is_gone_is_deleted(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    from pathlib import Path

    file = Path("dags/leaving.py")
    file.write_text("from evenflow import dag, task\n@task\ndef t():\n    pass\n@dag()\ndef leaving():\n    t()\nleaving()\n")
    assert cli("run", "dags/leaving.py")[0] == 0
    assert "still defines it" in (told := cli.refused("dags", "delete", "leaving", "--yes")) or "leaving.py" in told
    file.unlink()
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda question: "n")
    asked = wait_until(lambda: (said := cli("dags", "delete", "leaving"))[0] == 0 and said, "its end with its file")
    assert "leaving will be deleted, with 1 run and all results, history and logs.\nNothing was done." in asked[1]
    assert cli("dags", "delete", "leaving", "--yes")[0] == 0
    assert "There is no DAG 'leaving'" in cli.refused("dags", "show", "leaving")


def test_a_run_that_is_marked_failed(cli: CommandLine) -> None:
    cli("run", "steered", "--run-id", "fine")
    said = cli.show("runs", "mark", "failed", "steered/fine", "--dry-run")
    assert said == "steered/fine would be marked failed; no task of it changes.\n"
    assert cli.show("runs", "mark", "failed", "steered/fine", "--yes") == "steered/fine is being marked failed\n"
    wait_until(lambda: cli.ask("runs", "show", "steered/fine")["state"] == "failed")
    assert "has ended already: failed" in cli.refused("runs", "mark", "failed", "steered/fine", "--yes")


def test_the_last_day_of_a_backfill_is_included() -> None:
    assert end_of("2026-01-31").isoformat() == "2026-01-31T23:59:59.999999+00:00"
    assert end_of("2026-01-31T06:00").isoformat() == "2026-01-31T06:00:00+00:00"
    assert end_of("2026-01-31T06:00+02:00").isoformat() == "2026-01-31T06:00:00+02:00"
    with pytest.raises(ParamError, match="--to 'soon' is no date"):
        end_of("soon")


def test_numbers_of_things() -> None:
    assert [counted(n, "task") for n in (0, 1, 2, 1000)] == ["0 tasks", "1 task", "2 tasks", "1,000 tasks"]
