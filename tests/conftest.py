"""Fixtures for all tests: a real PostgreSQL, one for a test run, and a fresh, migrated database for each test that asks for one."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from evenflow.api.service import ApiService
from evenflow.forking.owned_template import OwnedTemplate
from evenflow.forking.sandbox import user_environment
from evenflow.processor.service import PYTHON, TEMPLATE_MODULE, TEMPLATE_TIMEOUT
from evenflow.runtime import dump
from evenflow.runtime.embedded import EmbeddedPostgres, programs
from evenflow.runtime.embedded import server as embedded_server
from evenflow.store.db.connect import UNBOUNDED, connect
from evenflow.store.db.migrate import migrate
from tests import browsers
from tests.apis import running_api
from tests.durations import Durations, add_options
from tests.running import RunningEvenflow, running_evenflow
from tests.trunks import lasting_trunks

_OTHER_SERVER = "EVENFLOW_TEST_POSTGRES"  # a directory with the bin, lib and share of another PostgreSQL, to run the tests on that
_RUN_DIR = "EVENFLOW_TEST_RUN_DIR"  # set by the process that the run began with, inherited by the workers of xdist
_TEMPLATE = "migrated"

# A test database need not survive a power cut; tests of durability start a server of their own.
_FAST = {
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum_naptime": "60s",
    "max_connections": "200",
    "max_wal_size": "256MB",  # it lies in memory
    "log_min_duration_statement": "-1",
}

_MEMORY = Path("/dev/shm")
_ROOM = 2 << 30  # a few processes make plans for millions of rows

# Fixtures and marks of a whole system: its tests are of `make test-system`. Those of one that is shared, or of which two starve
# each other, run in one process: `lines` fork until pids come again within milliseconds, and killers of two might meet.
_SYSTEMS = frozenset({"evenflow_up", "fleet", "lines", "schedulers", "spark"})
_LASTING = _SYSTEMS | {"system", "slow"}
_ONE_AT_A_TIME = ("evenflow_up", "lines", "spark")
_OF_SPARK = Path(__file__).parent / "spark"  # its tests are one group, other tests with Spark another: in one they would end last
_LASTING_S = 600  # what each of their tests may take that says nothing else: minutes, on a busy machine

# JVMs that live for seconds: to compile thoroughly what runs so briefly takes longer than to run it.
_SHORT_LIVED_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def _use_other_server(installed: Path) -> None:
    """The tests' server is that one, with its default configuration but for what makes it quick."""
    version = subprocess.run([installed / "bin" / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    major = int(version.split()[-1].partition(".")[0])
    for module in (programs, embedded_server):
        vars(module)["MAJOR"] = major
    vars(programs)["wheel_programs"] = vars(dump)["wheel_programs"] = lambda: installed / "bin"


def _roomy_memory() -> Path | None:
    """Where files are memory, if there is room for all that the server writes: to make and drop a database there costs half."""
    with contextlib.suppress(OSError):
        if shutil.disk_usage(_MEMORY).free > _ROOM and os.access(_MEMORY, os.W_OK):
            return _MEMORY
    return None


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


@pytest.hookimpl(tryfirst=True)  # before those are left out that the command does not want
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        given = item.callspec.params if hasattr(item, "callspec") else {}  # a parameter may be called as a fixture is
        needed = set(getattr(item, "fixturenames", ())) - given.keys() | {mark.name for mark in item.iter_markers()}
        if needed & _SYSTEMS:
            item.add_marker("system")
        for system in _ONE_AT_A_TIME:
            if system in needed:
                elsewhere = system == "spark" and not item.path.is_relative_to(_OF_SPARK)
                item.add_marker(pytest.mark.xdist_group("spark elsewhere" if elsewhere else system))
        if needed & _LASTING and "timeout" not in needed:
            item.add_marker(pytest.mark.timeout(_LASTING_S))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()  # thousands of tests and their modules stay: no collection looks through them, now or later
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Durations(config))
    config.pluginmanager.register(browsers)
    if other := os.environ.get(_OTHER_SERVER):
        _use_other_server(Path(other))
    if not hasattr(config, "workerinput"):
        os.environ.setdefault("JDK_JAVA_OPTIONS", _SHORT_LIVED_JAVA)
        # Not pytest's own directory: that is 0700, and the server may run as another user.
        directory = Path(tempfile.mkdtemp(prefix="evenflow-tests-", dir=_roomy_memory()))
        directory.chmod(0o755)
        os.environ[_RUN_DIR] = str(directory)
        if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):  # dozens of processes: each would compile all that it imports
            os.environ["PYTHONPYCACHEPREFIX"] = str(directory / "bytecode")


def pytest_unconfigure(config: pytest.Config) -> None:
    gc.unfreeze()  # what libraries made is deleted as they expect: DuckDB tells of each object that outlives its module
    if not hasattr(config, "workerinput") and _RUN_DIR in os.environ:
        directory = Path(os.environ.pop(_RUN_DIR))
        EmbeddedPostgres(directory).stop()
        shutil.rmtree(directory)


def _make_logins_cheap(conn: psycopg.Connection) -> None:
    """The same password, but what guards it against guessing, twice 4,096 hashes a login, is 2 ms of CPU at both ends."""
    conn.execute("set scram_iterations = 1")
    conn.execute(sql.SQL("alter role current_user password {}").format(sql.Literal(conn.info.password)))


@pytest.fixture(scope="session")
def postgres() -> EmbeddedPostgres:
    """The embedded server of this test run, shared by all its processes."""
    directory = Path(os.environ[_RUN_DIR])
    server = EmbeddedPostgres(directory, overrides=_FAST)
    url = server.start()
    with open(directory / "template.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with connect(url, name="test") as conn:
            known = conn.execute("select from pg_database where datname = %s", [_TEMPLATE]).fetchone()
            if known is None:
                _make_logins_cheap(conn)
                conn.execute(sql.SQL("create database {}").format(sql.Identifier(_TEMPLATE)))
                with connect(server.url(_TEMPLATE), name="test", timeouts=UNBOUNDED) as template:
                    migrate(template)
    return server


@pytest.fixture(scope="session")
def _maintenance(postgres: EmbeddedPostgres) -> Iterator[psycopg.Connection]:
    with connect(postgres.url(), name="test maintenance", timeouts=UNBOUNDED) as conn:
        yield conn


def _drop(maintenance: psycopg.Connection, name: str) -> None:
    """``with (force)`` would be refused while autovacuum is in it, which belongs to a superuser; a plain drop ends that."""
    maintenance.execute(
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = %s and usename = current_user", [name]
    )
    maintenance.execute(sql.SQL("drop database {}").format(sql.Identifier(name)))


@pytest.fixture
def database_url(postgres: EmbeddedPostgres, _maintenance: psycopg.Connection) -> Iterator[str]:
    """URL of a fresh database with the whole schema, dropped after the test with whoever is still connected to it."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    _maintenance.execute(
        sql.SQL("create database {} template {} strategy file_copy").format(sql.Identifier(name), sql.Identifier(_TEMPLATE))
    )
    yield postgres.url(name)
    _drop(_maintenance, name)


@pytest.fixture
def empty_database_url(postgres: EmbeddedPostgres, _maintenance: psycopg.Connection) -> Iterator[str]:
    """As ``database_url``, with nothing in it."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    _maintenance.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    yield postgres.url(name)
    _drop(_maintenance, name)


@pytest.fixture
def db(database_url: str) -> Iterator[psycopg.Connection]:
    """A connection to ``database_url``, autocommit."""
    with connect(database_url, name="test") as conn:
        yield conn


@pytest.fixture
async def api(database_url: str, tmp_path: Path) -> AsyncIterator[ApiService]:
    """On ``database_url``, in the process of the test."""
    async with running_api(database_url, tmp_path) as service:
        yield service


@pytest.fixture
def quick_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Services that register from now on, with an API in this process, beat every 0.2 s instead of 3."""
    monkeypatch.setattr("evenflow.api.execution.services.BEAT_S", 0.2)


@pytest.fixture(scope="session", autouse=True)
def _trunks() -> Iterator[None]:
    with lasting_trunks():
        yield


@pytest.fixture(scope="session")
def evenflow_up() -> Iterator[RunningEvenflow]:
    """A whole Evenflow, for all tests of this process that ask for it. Its logs are in ``home/logs/services``."""
    with running_evenflow() as running:
        yield running


@pytest.fixture
async def template() -> AsyncIterator[OwnedTemplate]:
    """What forks a process for each DAG file that a processor loads."""
    environment = {**user_environment(os.environ), **PYTHON}
    template = await OwnedTemplate.start(TEMPLATE_MODULE, {}, env=environment, load_timeout_s=TEMPLATE_TIMEOUT)
    yield template
    await template.close()
