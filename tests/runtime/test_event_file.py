"""Events kept outside the database tell what was done to those within, and the other way round."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evenflow.cli.app import run
from evenflow.errors import BadValue
from evenflow.runtime import event_file
from evenflow.runtime.exits import ExitCode
from evenflow.store.db.sql import sql
from evenflow.store.scheduling.incarnation import begin_incarnation
from evenflow.store.serving.events import event_text, record
from tests.waiting import wait_until

Db = psycopg.Connection[Any]


def count(db: Db, times: int) -> None:
    """The event that stands for many."""
    event = {"actor": "DAG a", "action": "connection.ask", "object": "c", "counted_as": "d", "times": times}
    db.execute(sql("events/count"), {"events": json.dumps([event])})


@pytest.fixture
def file(db: Db, tmp_path: Path) -> Path:
    """Of ten events, the seventh of which stands for many."""
    for number in range(9):
        if number == 6:
            count(db, 1)
        record(db, "ada", "pool.set", f"p{number}", slots=number, note="ä")
    exported(db, tmp_path / "events.jsonl", 10)
    return tmp_path / "events.jsonl"


def exported(db: Db, file: Path, count: int) -> event_file.Exported:
    """So many events: they come when no transaction of before is under way, those of other tests on this server neither."""
    parts = [event_file.export(db, file)]
    wait_until(lambda: sum(part.events for part in parts) >= count or parts.append(event_file.export(db, file)))
    done = event_file.Exported(sum(part.events for part in parts), parts[-1].chain)
    assert done.events == count
    return done


def wrong(db: Db, file: Path, noted: str | None = None) -> list[tuple[str, str]]:
    return [(what, of) for what, of, _ in event_file.compare(db, file, noted=noted).wrong]


def test_what_was_not_touched_agrees_and_an_export_goes_on_behind_the_last_line(db: Db, file: Path) -> None:
    """R-SE5"""
    before = file.read_bytes()
    assert event_file.export(db, file).events == 0
    assert file.read_bytes() == before
    record(db, "bob", "pool.delete", "p1")
    count(db, 2)
    assert event_file.compare(db, file).newer == 1
    done = exported(db, file, 2)  # what stands for many is told again when it is more
    assert file.read_bytes().startswith(before)
    count(db, 2)
    found = event_file.compare(db, file, noted=done.chain)
    assert (found.wrong, found.events, found.newer, found.chain) == ([], 11, 0, done.chain)
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("done", "found"),
    [
        ("update audit_event set actor = 'eve' where event_id = 3", [("changed", "3")]),
        ("update audit_event set detail = '{\"slots\": 9}' where event_id = 3", [("changed", "3")]),
        ("update audit_event set at = at - interval '1 day' where event_id = 3", [("changed", "3")]),
        ("update audit_event set times = 5 where event_id = 3", [("changed", "3")]),
        ("update audit_event set times = 0 where event_id = 7", [("changed", "7")]),
        ("update audit_event set object = 'd', times = 5 where event_id = 7", [("changed", "7")]),
        ("delete from audit_event where event_id = 3", [("gone", "3")]),
        ("delete from audit_event where event_id > 8", [("gone", "9"), ("gone", "10")]),
        ("delete from audit_event where event_id = 3; update audit_event set event_id = default where event_id = 4", None),
        ("insert into audit_event (actor, action, object, xact) values ('eve', 'pool.set', 'p', '5')", [("put in", "11")]),
    ],
)
def test_what_was_done_to_the_database_is_found(db: Db, file: Path, done: str, found: list[tuple[str, str]] | None) -> None:
    """R-SE5: a row that was changed or deleted, an end that was cut off, one that was put in between."""
    for statement in done.split("; "):
        db.execute(statement)
    assert wrong(db, file) == (found or [("put in", "11"), ("gone", "3"), ("gone", "4")])


def test_a_change_that_is_exported_as_if_it_were_new_is_found(db: Db, file: Path) -> None:
    """R-SE5"""
    db.execute("update audit_event set actor = 'eve', xact = pg_current_xact_id() where event_id = 3")
    exported(db, file, 1)
    assert wrong(db, file) == [("changed", "3")]


def rewritten(file: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """As by somebody who knows how it is made."""
    events = [json.loads(line) for line in file.read_text().splitlines()]
    change(events)
    chain, lines = event_file.FIRST, []
    for event in events:
        event.pop("chain")
        chain = event_file._next(chain, event_text(event))
        lines.append(json.dumps({**event, "chain": chain}) + "\n")
    file.write_text("".join(lines))


def test_what_was_done_to_the_file_is_found(db: Db, file: Path) -> None:
    """R-SE5: by its chain, by the database, and its end by a value of the chain that was noted."""
    whole, noted = file.read_text(), event_file.compare(db, file).chain
    lines = whole.splitlines(keepends=True)
    file.write_text(whole.replace('"p2"', '"p9"'))
    assert ("changed", "line 3") in wrong(db, file), "the line does not fit its chain"
    file.write_text("".join(lines[:2] + lines[3:]))
    assert wrong(db, file) == [("changed", "line 3"), ("put in", "3")]
    for change in ('{"action": ', '{"actor": "nobody", "action": '), ('{"action": ', '{"action" : '):
        file.write_text(whole.replace(*change, 1))
        assert wrong(db, file) == [("changed", "line 1")], (
            "read by a program it says the same, and what stands there is something else"
        )
    file.write_text("".join([*lines[:4], "{}\n", *lines[4:]]))
    assert wrong(db, file) == [("changed", "line 5")]
    file.write_text("".join(lines[:8]))
    assert wrong(db, file) == [], "a chain alone does not show that its end is missing"
    assert wrong(db, file, noted) == [("missing", "file")]
    file.write_text(whole)
    rewritten(file, lambda events: events[2].update(actor="eve"))
    assert wrong(db, file) == [("changed", "3")], "a chain that was made anew fits, and the database differs"


def test_what_was_done_to_both_is_found_by_what_was_noted_alone(db: Db, file: Path) -> None:
    """R-SE5: so that it is known what this does not show: who changes both changes what is neither noted nor kept elsewhere."""
    noted = event_file.compare(db, file).chain
    db.execute("update audit_event set actor = 'eve' where event_id = 3")
    rewritten(file, lambda events: events[2].update(actor="eve"))
    assert wrong(db, file) == []
    assert wrong(db, file, noted) == [("missing", "file")]


def test_what_was_deleted_before_it_was_exported_is_not_known(db: Db, file: Path) -> None:
    """R-SE5: an export says nothing of what it has never seen; so it runs often."""
    record(db, "eve", "secrets.show", "all")
    db.execute("delete from audit_event where actor = 'eve'")
    assert wrong(db, file) == []


def test_an_event_whose_transaction_ends_late_is_not_passed_over(db: Db, database_url: str, file: Path) -> None:
    """R-SE5: it has the smaller number, and is not there yet when the greater one is."""
    with psycopg.connect(database_url) as late:
        record(late, "late", "pool.set", "p")
        record(db, "early", "pool.set", "p")
        assert event_file.export(db, file).events == 0, "both come when it is known which is first"
    exported(db, file, 2)
    assert wrong(db, file) == []


def test_what_the_database_keeps_for_so_long_only_is_no_finding(db: Db, file: Path) -> None:
    """R-SE5: younger ones are."""
    db.execute("update audit_event set at = at - interval '40 days' where event_id < 4")
    old = file.with_name("old.jsonl")
    exported(db, old, 10)
    db.execute("delete from audit_event where event_id < 5")
    db.execute("insert into setting (name, value, changed_by) values ('audit_retention_days', '30', 'ada')")
    found = event_file.compare(db, old)
    assert (found.aged, found.kept_days, [of for _, of, _ in found.wrong]) == (3, 30, ["4"])


def test_a_file_that_does_not_fit_is_left_alone(db: Db, file: Path) -> None:
    """R-SE5: of another state of the database, half a line, or another export's at this moment."""
    whole = file.read_bytes()
    with file.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(BadValue, match="Another export"):
            event_file.export(db, file)
    file.write_bytes(whole[:-20])
    with pytest.raises(BadValue, match="was the disk full"):
        event_file.export(db, file)
    assert file.read_bytes() == whole[:-20]
    assert ("changed", "line 10") in wrong(db, file)
    file.write_bytes(whole)
    begin_incarnation(db, reason="fenced", by="ada")
    for attempt in (event_file.export, event_file.compare):
        with pytest.raises(BadValue, match="set back"):
            attempt(db, file)
    assert file.read_bytes() == whole


def test_a_role_that_may_read_three_tables_is_enough(
    db: Db, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """R-SE5: what collects events can change none, and is told what it lacks. A role that PostgreSQL comes with stands for it."""
    file = tmp_path / "events.jsonl"
    monkeypatch.setenv("EVENFLOW_HOME", str(tmp_path))
    monkeypatch.setenv("EVENFLOW_DATABASE_URL", database_url)
    record(db, "ada", "pool.set", "p")
    db.execute("revoke select on setting from current_user")
    assert run(["events", "export", str(file)]) == ExitCode.OK
    assert run(["events", "verify", str(file)]) == ExitCode.USAGE
    assert "grant select on audit_event, incarnation, setting to evenflow" in capsys.readouterr().err.replace("\n", " ")
    db.execute("grant select on setting to current_user")
    db.execute("revoke insert, update, delete, truncate on audit_event from current_user")
    exported(db, file, 0 if file.stat().st_size else 1)
    assert run(["events", "verify", str(file)]) == ExitCode.OK
    db.execute("grant delete on audit_event to current_user")
    db.execute("delete from audit_event")
    assert run(["events", "verify", str(file), "--json"]) == ExitCode.FAILED
    assert run(["events", "verify", str(tmp_path / "none")]) == ExitCode.USAGE


def test_an_export_reads_no_more_than_it_writes(db: Db, file: Path) -> None:
    """R-SE5: however many events there are, and on from where it is."""
    many = "insert into audit_event (actor, action, object) select 'ada', 'pool.set', 'p' || n from generate_series(1, 20000) n"
    db.execute(many)
    db.execute("analyze audit_event")
    row = db.execute("select max(xact)::text::bigint, max(event_id) - 10 from audit_event").fetchone()
    assert row is not None
    names = {"xact": str(row[0]), "event_id": row[1], "since": None, "until": None, "limit": 1000}
    explained = db.execute(b"explain (analyze, buffers, format json) " + sql("events/list_settled"), names).fetchone()
    assert explained is not None
    plan = explained[0][0]["Plan"]
    assert plan["Actual Rows"] <= 10
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 20
    assert "audit_event_settled" in json.dumps(plan)
