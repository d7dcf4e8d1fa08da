"""A dump is of one moment; after it was restored, what ran since is ended, and what ran then is sent again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evenflow.errors import DumpError
from evenflow.runtime.dump import dump, restore
from evenflow.store.db.connect import UNBOUNDED, connect
from evenflow.store.scheduling.incarnation import begin_incarnation
from evenflow.store.scheduling.leases import list_lost
from tests.ports import lasting_port
from tests.running import RunningEvenflow, environment, evenflow, evenflow_json, make_home, remove_home, start_evenflow
from tests.waiting import wait_until

pytestmark = pytest.mark.system

PIPELINE = """
import os, time
from pathlib import Path
from evenflow import DAG, task

home = Path({home!r})

def runs(pid):
    try:
        return Path(f"/proc/{{pid}}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False

with DAG("held", params={{"go": "go"}}):
    @task
    def hold(params=None, run_id=None):
        with open(home / "ledger", "a") as ledger:
            before = [line.split() for line in (home / "ledger").read_text().splitlines()]
            others = [int(line[2]) for line in before if line[:2] == ["begin", run_id]]
            ledger.write(f"begin {{run_id}} {{os.getpid()}} {{'beside' if any(map(runs, others)) else 'alone'}}\\n")
            ledger.flush()
            while not (home / params["go"]).exists():
                time.sleep(0.02)
            ledger.write(f"end {{run_id}} {{os.getpid()}}\\n")
    hold()
"""


@contextlib.contextmanager
def worker(home: Path, port: int, token: str) -> Iterator[subprocess.Popen[bytes]]:
    """On a home of its own, as on another host."""
    own = home / "elsewhere"
    own.mkdir()
    settings = {"EVENFLOW_API_URL": f"http://127.0.0.1:{port}", "EVENFLOW_TOKEN": token, "EVENFLOW_XCOM_URL": str(home / "xcom")}
    with open(own / "log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "evenflow", "worker", "--name", "far"],
            env={**environment(own), **settings},
            cwd=own,
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_what_runs_on_another_host_is_ended_and_sent_again() -> None:
    """R-CS7, R-CS3: two tries of a task never run side by side, also when the database forgets the one that runs."""
    home, port = make_home(), lasting_port()
    ledger = home / "ledger"
    dumped = home / "before.dump"

    def lines(begin: str) -> list[list[str]]:
        return [line.split() for line in ledger.read_text().splitlines() if line.startswith(begin)] if ledger.exists() else []

    up: RunningEvenflow | None = None
    try:
        (home / "dags").mkdir()
        (home / "dags" / "held.py").write_text(PIPELINE.format(home=str(home)))
        up = start_evenflow(home, "--workers", "0", "--port", str(port))
        token = evenflow_json(home, "tokens", "create", "worker")["token"]
        with worker(home, port, token) as process:
            wait_until(lambda: "held" in evenflow(home, "dags", "list").stdout, "the DAG")
            assert evenflow(home, "runs", "trigger", "held", "--run-id", "early").returncode == 0
            wait_until(lambda: lines("begin early"), "the early run")
            done = evenflow(home, "db", "dump", str(dumped))
            assert done.returncode == 0, done.stderr
            assert "Not in it" in done.stdout
            assert "dump a standby" in done.stderr
            assert evenflow(home, "runs", "trigger", "held", "--run-id", "late").returncode == 0
            wait_until(lambda: lines("begin late"), "the late run")
            refused = evenflow(home, "db", "restore", str(dumped), "--replace")
            assert refused.returncode != 0
            assert "is in use: evenflow" in refused.stderr.replace("\n", " ")
            assert up.end() == 0, up.log
            restored = evenflow(home, "db", "restore", str(dumped), "--replace")
            assert restored.returncode == 0, restored.stderr
            up = start_evenflow(home, "--workers", "0", "--port", str(port))
            wait_until(lambda: len(lines("begin early")) == 2, "the early run once more")
            (home / "go").touch()
            wait_until(
                lambda: [r["state"] for r in evenflow_json(home, "runs", "list")["runs"]] == ["success"], "the end of the run"
            )
            assert process.poll() is None, "the worker came back by itself"
        assert [line[3] for line in lines("begin")] == ["alone"] * 3
        assert [line[1] for line in lines("begin")] == ["early", "late", "early"]
        assert [line[1:] for line in lines("end")] == [lines("begin")[2][1:3]], "what was forgotten was killed before it ended"
        assert up.end() == 0, up.log
    finally:
        if up is not None:
            up.process.kill()
            up.process.wait()
        remove_home(home)


def silent(_: str) -> None:
    pass


def test_a_dump_and_back(database_url: str, db: psycopg.Connection[Any], tmp_path: Path) -> None:
    db.execute("insert into token_key values (1, 'before')")
    given = (
        "insert into token (kind, name, created_by, expires_at, key_id, digest)"
        " values ('operator', %s, 'ada', now() + '1 day', 1, %s)"
    )
    db.execute(given, ["old", bytes(range(32))])
    db.execute("insert into setting (name, value, changed_by) values ('x', '1', 'ada') on conflict do nothing")
    elsewhere = "9000000000000000"
    db.execute("insert into audit_event (actor, action, object, xact) values ('ada', 'pool.set', 'p', %s)", [elsewhere])
    db.execute("insert into exported (past, at) values (%s, now())", [elsewhere])
    file = tmp_path / "evenflow.dump"
    done = dump(database_url, file, replace=False, progress=silent)
    assert (done.size, file.stat().st_mode & 0o777) == (file.stat().st_size, 0o600)
    with pytest.raises(DumpError, match="exists"):
        dump(database_url, file, replace=False, progress=silent)
    db.execute("update token_key set value = 'after'")
    db.execute(given, ["new", b"\\x new \0"])
    db.execute("delete from setting")
    db.execute("update installation set id = 'this one'")
    installation = db.execute("select id from installation").fetchone()
    db.execute("create table left_over (n int)")
    db.close()
    with pytest.raises(DumpError, match="is not empty"):
        restore(database_url, file, replace=False, by="ada", progress=silent)
    tables: list[str] = []
    assert restore(database_url, file, replace=True, by="ada", progress=tables.append).tokens_kept
    assert {"dag_run", "xcom", "setting"} <= set(tables)
    with connect(database_url, name="test") as conn:
        assert conn.execute("select value from setting where name = 'x'").fetchall() == [(1,)]
        assert conn.execute("select value from token_key").fetchall() == [(b"after",)], "keys stay those that are in use"
        digests = [(bytes(range(32)),), (b"\\x new \0",)]
        assert conn.execute("select digest from token order by token_id").fetchall() == digests, "and the list of tokens"
        assert conn.execute("select to_regclass('left_over')").fetchone() == (None,)
        assert conn.execute("select reason, began_by from incarnation").fetchall() == [("restored from evenflow.dump", "ada")]
        events = conn.execute("select actor, object from audit_event where action = 'db.restore'").fetchall()
        assert events == [("ada", "restored from evenflow.dump")], "R-SE5"
        assert conn.execute("select 1 from audit_event where xact = %s", [elsewhere]).fetchall() == [], "exports go on from here"
        past = "select past < pg_current_xact_id()::text::bigint from exported"
        assert conn.execute(past).fetchall() == [(True,)], "R-SP4: retention hears of exports from here"
        assert conn.execute("select id from installation").fetchone() == installation, "tokens stay good"


def test_a_dump_holds_no_keys(database_url: str, db: psycopg.Connection[Any], empty_database_url: str, tmp_path: Path) -> None:
    """Whoever reads it cannot make tokens; whoever restores it elsewhere makes new ones."""
    db.execute("insert into token_key values (1, 'the key of all tokens')")
    file = tmp_path / "evenflow.dump"
    dump(database_url, file, replace=False, progress=silent)
    assert not restore(empty_database_url, file, replace=False, by="ada", progress=silent).tokens_kept
    with connect(empty_database_url, name="test") as conn:
        assert conn.execute("select count(*) from token_key").fetchone() == (0,)


def test_a_restore_that_fails_changes_nothing(database_url: str, db: psycopg.Connection[Any], tmp_path: Path) -> None:
    file = tmp_path / "evenflow.dump"
    db.execute(
        "insert into code"
        " select n::text, (select string_agg(gen_random_uuid()::text, '')::bytea from generate_series(1, 200) where n > 0)"
        " from generate_series(1, 50) n"
    )
    dump(database_url, file, replace=False, progress=silent)
    data = bytearray(file.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 64] = os.urandom(64)
    file.write_bytes(data)
    db.execute("delete from code where code_hash = '7'")
    db.close()
    with pytest.raises(DumpError, match="which is as it was"):
        restore(database_url, file, replace=True, by="ada", progress=silent)
    with connect(database_url, name="test") as conn:
        assert conn.execute("select count(*) from code where code_hash <> ''").fetchone() == (49,)
        assert conn.execute("select count(*) from incarnation").fetchone() == (0,)


@pytest.mark.parametrize(("content", "says"), [(None, "There is no file"), (b"nonsense", "is no dump that can be read")])
def test_what_is_no_dump(database_url: str, tmp_path: Path, content: bytes | None, says: str) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DumpError, match=says):
        restore(database_url, file, replace=True, by="ada", progress=silent)


def test_a_dump_of_a_newer_release(database_url: str, db: psycopg.Connection[Any], tmp_path: Path) -> None:
    db.execute("insert into schema_version (version, name) values (9000, 'future')")
    dump(database_url, tmp_path / "file", replace=False, progress=silent)
    with pytest.raises(DumpError, match="of schema version 9000, newer than"):
        restore(database_url, tmp_path / "file", replace=True, by="ada", progress=silent)


def test_an_incarnation_leaves_nothing_in_the_hands_of_those_before(database_url: str) -> None:
    """Numbers go on behind all that may have been given out, and every try is one of a worker that is lost."""
    with connect(database_url, name="test", timeouts=UNBOUNDED) as conn:
        conn.execute("insert into service (kind, name, host, pid, version) values ('worker', 'w', 'h', 1, '0')")
        conn.execute(
            "insert into dispatch"
            " (epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots, worker_id)"
            " select n, 1, n, -1, 1, 1, 1, 'default', '{}', 1, case n when 1 then service_id end"
            " from generate_series(1, 2) n, service where name = 'w'"
        )
        first, second = (begin_incarnation(conn, reason="fenced", by="ada") for _ in range(2))
        assert second > first
        assert list_lost(conn) == [], "which services of before are still there, nobody knows"
        conn.execute("insert into service (kind, name, host, pid, version, state) values ('worker', 'since', 'h', 1, '0', 'lost')")
        assert [name for _, name, _ in list_lost(conn)] == ["since"]
        conn.execute("delete from service where name = 'since'")
        states = conn.execute(
            "select d.epoch, s.state from dispatch d join service s on s.service_id = d.worker_id order by 1"
        ).fetchall()
        assert states == [(1, "lost"), (2, "lost")]
        (epoch,) = conn.execute("select nextval('epoch_seq')").fetchone()  # type: ignore[misc]
        assert epoch > time.time() * 1_000_000 - 60e6
