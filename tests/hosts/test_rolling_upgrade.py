"""Two releases side by side: services of the older one go on while those of the newer one join, and leave without a stop."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from evenflow.store.db.connect import connect
from evenflow.store.db.migrate import SCHEMA_VERSION
from evenflow.wire.versions import WIRE
from tests.hosts.fleet import Fleet
from tests.house.project import SOURCE
from tests.waiting import wait_until

DAG = """
import os
from evenflow import dag, task

@task(retries=0)
def first() -> str:
    return os.environ["FLEET_NAME"]

@task(retries=0)
def then(before: str) -> str:
    return os.environ["FLEET_NAME"]

@dag(max_active_runs=None)
def {name}():
    then(then(first()))

{name}()
"""
CHANGED_MESSAGES = (
    "Registered",
    "Beat",
    "BeatAnswer",
    "Claim",
    "ClaimAnswer",
    "Assignment",
    "Report",
    "Reports",
    "FilesLeased",
    "ParsedFile",
)
TRIGGER = """
    insert into dag_run (dag_id, run_id, version_key, run_type)
    select dag_id, 'run' || (select count(*) from dag_run), version_key, 'manual' from dag where dag_id = 'early'"""


def next_release(directory: Path) -> Path:
    """This source tree as a release after it may be: it expands the schema and contracts it, does not work on today's, and has
    another version of the messages, in which it says more.
    """
    package = directory / "next" / "evenflow"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    migrations = package / "store" / "migrations"
    migrations.mkdir(exist_ok=True)
    more = "".join(f"alter table {table} add column more int;\n" for table in ("dag_run", "dispatch", "report"))
    (migrations / f"{SCHEMA_VERSION + 1:04}_more.sql").write_text(f"-- More.\n{more}")
    less = f"-- Less.\n-- works from: {SCHEMA_VERSION + 1}\nalter table dag_run drop column more;\n"
    (migrations / f"{SCHEMA_VERSION + 2:04}_less.sql").write_text(less)
    edit(package / "store" / "db" / "migrate.py", r"^OLDEST_SCHEMA = \d+", f"OLDEST_SCHEMA = {SCHEMA_VERSION + 1}")
    edit(package / "wire" / "versions.py", r"^WIRE = \d+", f"WIRE = {WIRE + 1}")
    messages = package / "wire" / "messages.py"
    edit(messages, "omit_defaults=True", "omit_defaults=False")
    for name in CHANGED_MESSAGES:
        begins = rf'^class {name}\(Message\):\n((?:    """(?:.|\n)*?"""\n)?)'
        edit(messages, begins, rf'class {name}(Message, kw_only=True):\n\1    novelty: str = "new"\n')
    return package.parent


def edit(path: Path, pattern: str, replacement: str) -> None:
    text, count = re.subn(pattern, replacement, path.read_text(), count=1, flags=re.MULTILINE)
    assert count == 1, (path, pattern)
    path.write_text(text)


@contextmanager
def load(fleet: Fleet) -> Iterator[None]:
    """Some runs at any moment."""
    stop = threading.Event()
    broken: list[BaseException] = []

    def trigger() -> None:
        try:
            with connect(fleet.url, name="load") as db:
                while not stop.wait(0.1):
                    (live,) = db.execute("select count(*) from dag_run where state in ('queued', 'running')").fetchone()
                    if live < 8:
                        db.execute(TRIGGER)
                        db.execute("select pg_notify('inbox', '')")
        except BaseException as error:
            broken.append(error)

    thread = threading.Thread(target=trigger)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert broken == []


def ended(db: psycopg.Connection[tuple[int]]) -> int:
    (count,) = db.execute("select count(*) from dag_run where state in ('success', 'failed')").fetchone()
    return count


def goes_on(fleet: Fleet, runs: int = 10) -> None:
    before = ended(fleet.db)
    wait_until(lambda: ended(fleet.db) >= before + runs)


def everyone_works(fleet: Fleet, *names: str) -> None:
    who = "select distinct value #>> '{}' from xcom where run_key > %s"
    (since,) = fleet.db.execute("select max(run_key) from dag_run").fetchone()
    wait_until(lambda: {name for (name,) in fleet.db.execute(who, [since])} >= set(names))


def test_the_next_release_can_be_made_of_this_one(tmp_path: Path) -> None:
    """Whoever moves what it differs in learns that at once, and not when releases are next tried side by side."""
    next_release(tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_releases_work_side_by_side(fleet: Fleet, tmp_path: Path) -> None:
    """R-HA6, R-HA9: expand, join, leave, contract, all under load; nothing fails or is done twice, and what is too old says so."""
    release = next_release(tmp_path)
    (tmp_path / "dags" / "early.py").write_text(DAG.format(name="early"))
    old_api = fleet.start("api", "a1")
    old_url = fleet.api_url
    fleet.start_all(("scheduler", "s1"), ("processor", "p1"), ("worker", "w1"))
    wait_until(lambda: fleet.db.execute("select 1 from dag where dag_id = 'early'").fetchone())
    with load(fleet):
        goes_on(fleet)
        said = fleet.launch("scheduler", "s0", release=release).await_refusal()
        assert f"schema version {SCHEMA_VERSION}, this Evenflow needs {SCHEMA_VERSION + 1}. Type: evenflow db migrate" in said

        migrated = fleet.evenflow("db", "migrate", release=release)
        assert migrated.returncode == 0, migrated.stderr
        assert f"applied {SCHEMA_VERSION + 1:04} more" in migrated.stdout
        assert f"left for later: {SCHEMA_VERSION + 2:04}_less" in migrated.stdout
        goes_on(fleet)

        fleet.start_all(("scheduler", "s2"), ("worker", "w2"), ("processor", "p2"), release=release)  # newer ones on an older API
        fleet.start("api", "a2", release=release)
        fleet.start_all(("worker", "w3"), release=release)
        fleet.start_all(("worker", "w4"))  # an older one on a newer API
        everyone_works(fleet, "w1", "w2", "w3", "w4")
        (tmp_path / "dags" / "late.py").write_text(DAG.format(name="late"))
        wait_until(lambda: fleet.db.execute("select 1 from dag where dag_id = 'late'").fetchone())

        refused = fleet.evenflow("db", "migrate", "--contract", release=release)
        assert refused.returncode != 0
        for service in ("api a1 on ", "scheduler s1 on "):
            assert service in refused.stderr
        assert "evenflow db migrate --contract" in refused.stderr
        new_url = fleet.api_url
        of_a1 = [service for service in fleet.services if service.name in ("w1", "p1", "s1", "w2", "p2", "w4")]
        assert old_url != new_url
        fleet.end(of_a1)
        old_api.stop()
        fleet.start_all(("processor", "p3"), ("worker", "w5"), release=release)
        goes_on(fleet)

        contracted = fleet.evenflow("db", "migrate", "--contract", release=release)
        assert contracted.returncode == 0, contracted.stderr
        goes_on(fleet)
    too_old = f"on which a program must know version {SCHEMA_VERSION + 1}; this Evenflow knows {SCHEMA_VERSION}. Upgrade Evenflow"
    for service in (fleet.launch("scheduler", "s3"), fleet.launch("api", "a3")):
        assert too_old in service.await_refusal()
    assert too_old in fleet.evenflow("db", "migrate").stderr

    wait_until(lambda: not fleet.live_runs())
    assert fleet.db.execute("select distinct state::text from dag_run").fetchall() == [("success",)]
    assert fleet.db.execute("select distinct try_number, losses from task_instance").fetchall() == [(1, 0)]
    audited = fleet.evenflow("audit", release=release)
    assert audited.returncode == 0, audited.stdout
    for service in fleet.services:
        if service.kind in ("scheduler", "api") and service.name in ("s1", "s2", "a1", "a2"):
            assert "Traceback" not in service.log, service.log
