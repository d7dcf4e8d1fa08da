"""What people do to the database itself is told by events: who, on which host, and when."""

from __future__ import annotations

import getpass
import json
import socket
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evenflow.cli.app import run
from evenflow.runtime.exits import ExitCode

ME = f"{getpass.getuser()} on {socket.gethostname()}"


@pytest.fixture(autouse=True)
def settings(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENFLOW_HOME", str(tmp_path))
    monkeypatch.setenv("EVENFLOW_DATABASE_URL", database_url)


def events(db: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    return db.execute("select actor, action, object from audit_event where action like 'db.%' order by event_id").fetchall()


def test_psql_is_told_with_who_opened_it(db: psycopg.Connection[Any], capfd: pytest.CaptureFixture[str]) -> None:
    """R-SE1: before a statement is executed, so that none can hide it; what was typed is not told."""
    assert run(["db", "psql", "--", "-Atc", "select count(*) from audit_event where action = 'db.psql'"]) == ExitCode.OK
    assert capfd.readouterr().out == "1\n"
    assert run(["db", "psql", "--", "-c", "nonsense"]) == ExitCode.USAGE
    assert events(db) == [(ME, "db.psql", "database")] * 2


def test_psql_opens_a_database_that_cannot_tell_it(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is for databases that are broken, too, and says that nobody will know."""
    monkeypatch.setenv("EVENFLOW_DATABASE_URL", empty_database_url)
    assert run(["db", "psql", "--", "-Atc", "select 1"]) == ExitCode.OK
    shown = capfd.readouterr()
    assert shown.out == "1\n"
    assert "events do not tell of this" in shown.err


def test_a_fence_is_told_with_the_incarnation_that_it_begins(
    db: psycopg.Connection[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """R-HA18: in the same transaction, so there is neither without the other."""
    assert run(["db", "fence", "--json"]) == ExitCode.OK
    begun = json.loads(capsys.readouterr().out)["incarnation"]
    assert events(db) == [(ME, "db.fence", "database")]
    row = db.execute(
        "select incarnation, began_by, began_at = at from incarnation, audit_event where action = 'db.fence'"
        " order by incarnation desc limit 1"
    ).fetchone()
    assert row == (begun, getpass.getuser(), True)


def test_a_fence_that_cannot_be_told_does_not_happen(db: psycopg.Connection[Any]) -> None:
    db.execute("alter table audit_event add constraint never check (action <> 'db.fence')")
    before = db.execute("select count(*) from incarnation").fetchone()
    assert run(["db", "fence"]) != ExitCode.OK
    assert events(db) == []
    assert db.execute("select count(*) from incarnation").fetchone() == before
