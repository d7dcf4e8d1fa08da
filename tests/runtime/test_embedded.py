"""The embedded PostgreSQL: one server for all, closed to everybody else, that survives what processes do to it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psutil
import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

from evenflow.errors import DatabaseUnavailable
from evenflow.runtime.embedded import EmbeddedPostgres, account, programs
from evenflow.runtime.embedded.account import choose_account, place_cluster
from evenflow.runtime.embedded.programs import find_programs
from evenflow.store.db.connect import connect
from tests.waiting import wait_until

FAST = {"fsync": "off"}
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as somebody else")


def short_directory() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="evenflow-home-"))
    directory.chmod(0o755)
    return directory


@pytest.fixture(scope="module")
def shared() -> Iterator[EmbeddedPostgres]:
    """A home with a database, for tests that leave it as usable as they found it."""
    server = EmbeddedPostgres(short_directory(), overrides=FAST)
    yield server
    server.stop()
    shutil.rmtree(server.home)


@pytest.fixture
def server(shared: EmbeddedPostgres) -> Iterator[EmbeddedPostgres]:
    yield shared
    shared.stop()


@pytest.fixture
def home() -> Iterator[Path]:
    directory = short_directory()
    yield directory
    EmbeddedPostgres(directory).stop()
    shutil.rmtree(directory)


def works(url: str) -> bool:
    with connect(url, name="test") as conn:
        return conn.execute("select 1").fetchone() == (1,)


def test_it_survives_a_restart(server: EmbeddedPostgres) -> None:
    with connect(server.start(), name="test") as conn:
        conn.execute("create table kept as select 42 as answer")
    assert server.stop()
    assert not server.stop()
    with connect(server.start(), name="test") as conn:
        assert conn.execute("table kept").fetchone() == (42,)
        conn.execute("drop table kept")


def test_the_last_user_stops_it(server: EmbeddedPostgres) -> None:
    other = EmbeddedPostgres(server.home)
    with server.lease() as url:
        with other.lease() as same:
            assert url == same
        assert works(url)
    assert server.running() is None


def test_one_that_shall_be_kept_is_not_stopped_by_its_users(server: EmbeddedPostgres) -> None:
    server.start(keep=True)
    with server.lease():
        pass
    assert server.running() is not None
    server.stop()
    with server.lease():
        pass
    assert server.running() is None


def test_many_may_start_it_at_once(server: EmbeddedPostgres) -> None:
    with ThreadPoolExecutor(4) as threads:
        urls = set(threads.map(lambda _: EmbeddedPostgres(server.home).start(), range(4)))
    assert len(urls) == 1
    assert works(urls.pop())


def test_one_left_behind_by_a_kill_is_adopted(server: EmbeddedPostgres) -> None:
    script = f"""if True:
        import os, signal
        from pathlib import Path
        from evenflow.runtime.embedded import EmbeddedPostgres
        with EmbeddedPostgres(Path({str(server.home)!r}), overrides={FAST!r}).lease():
            os.kill(os.getpid(), signal.SIGKILL)
    """
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    left = server.running()
    assert left is not None
    with server.lease() as url:
        assert server.running() == left
        assert works(url)
    assert server.running() is None


def test_a_server_that_was_killed_itself_is_started_again(server: EmbeddedPostgres) -> None:
    server.start()
    postmaster = psutil.Process(server.running().pid)
    backends = postmaster.children()
    postmaster.kill()
    psutil.wait_procs([postmaster, *backends], timeout=10)
    assert server.running() is None
    assert works(server.start())


def test_a_start_waits_for_what_a_killed_server_has_left_behind(server: EmbeddedPostgres) -> None:
    """R-HA5: its backends end when they notice, which takes a while where they are kept from it."""
    with closing(psycopg.connect(server.start())) as conn, ThreadPoolExecutor() as threads:
        left, log = psutil.Process(conn.info.backend_pid), server.cluster / "log" / "start.log"
        left.suspend()
        postmaster = psutil.Process(server.running().pid)
        postmaster.kill()
        postmaster.wait(20)
        log.write_text("")
        try:
            starting = threads.submit(server.start)
            wait_until(lambda: starting.done() or (log.exists() and "FATAL" in log.read_text()), "a start that fails")
            assert not starting.done()
        finally:
            left.resume()
        assert works(starting.result(60))


def test_a_pid_file_whose_pid_belongs_to_somebody_else_by_now(server: EmbeddedPostgres) -> None:
    server.start()
    pid_file = server.cluster / "data" / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    server.stop()
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    choose_account(server.cluster).own(pid_file)
    assert server.running() is None


def test_a_lost_password_is_replaced(server: EmbeddedPostgres) -> None:
    old = server.start()
    server.stop()
    (server.home / "postgres.password").unlink()
    with pytest.raises(DatabaseUnavailable, match=r"postgres\.password, .* does not exist\. Type: evenflow db start$"):
        server.url()
    new = server.start()
    assert new != old
    assert works(new)


def test_nobody_connects_without_the_password_nor_from_the_network(server: EmbeddedPostgres) -> None:
    url = server.start()
    parts = psycopg.conninfo.conninfo_to_dict(url)
    for user in ("evenflow", "postgres"):
        with pytest.raises(psycopg.OperationalError, match="no password supplied"):
            psycopg.connect(host=parts["host"], port=5432, user=user, dbname="evenflow")
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(host=parts["host"], port=5432, user=user, dbname="evenflow", password="guess")
    assert psutil.Process(server.running().pid).net_connections("inet") == []


def test_only_its_owner_reads_the_password_and_reaches_the_socket(server: EmbeddedPostgres) -> None:
    server.start()
    assert stat.S_IMODE((server.home / "postgres.password").stat().st_mode) == 0o600
    assert stat.S_IMODE((server.cluster / "socket").stat().st_mode) == 0o700
    assert stat.S_IMODE((server.cluster / "data").stat().st_mode) == 0o700


def test_the_role_of_services_is_no_superuser(server: EmbeddedPostgres) -> None:
    """It may make roles, those that read reports, and give none of them, nor itself, what it has not."""
    with connect(server.start(), name="test") as conn:
        assert conn.execute("select rolsuper, rolcreaterole from pg_roles where rolname = current_user").fetchone() == (False, True)
        for wish in (
            "grant pg_execute_server_program to current_user",
            "create role more superuser",
            "alter role current_user superuser",
        ):
            with pytest.raises(InsufficientPrivilege):
                conn.execute(wish)


def test_commits_are_durable_by_default(home: Path) -> None:
    with connect(EmbeddedPostgres(home).start(), name="test") as conn:
        durable = conn.execute(
            "select current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes')"
        )
        assert durable.fetchone() == ("on", "on", "on")


def test_settings_of_the_user_win(server: EmbeddedPostgres) -> None:
    server.start()
    server.stop()
    conf = server.cluster / "data" / "postgresql.conf"
    before = conf.read_text()
    conf.write_text(before + "work_mem = 5MB\n")
    with connect(server.start(), name="test") as conn:
        assert conn.execute("show work_mem").fetchone() == ("5MB",)
    conf.write_text(before)


def test_a_start_that_fails_says_why_and_where_the_logs_are(server: EmbeddedPostgres) -> None:
    server.start()
    server.stop()
    broken = EmbeddedPostgres(server.home, overrides={**FAST, "work_mem": "'plenty'"})
    with pytest.raises(DatabaseUnavailable) as caught:
        broken.start()
    assert str(caught.value).startswith("The embedded PostgreSQL does not start: ")
    assert str(caught.value).endswith(f"Its logs are in {server.cluster / 'log'}.")


def test_data_of_another_major_version_are_not_touched(server: EmbeddedPostgres) -> None:
    server.start()
    server.stop()
    version = server.cluster / "data" / "PG_VERSION"
    version.write_text("17\n")
    with pytest.raises(DatabaseUnavailable, match=r"is of PostgreSQL 17, the installed server is 18\. Dump it"):
        server.start()
    version.write_text("18\n")


def test_a_deep_home_gets_a_socket_elsewhere(home: Path) -> None:
    deep = home / "a-rather-long-name-of-a-directory" / "and-another-one-that-is-even-longer-than-that" / ("x" * 30)
    deep.mkdir(parents=True)
    server = EmbeddedPostgres(deep, overrides=FAST)
    with server.lease() as url:
        socket_dir = Path(psycopg.conninfo.conninfo_to_dict(url)["host"])
        assert socket_dir.parent == Path("/tmp")
        assert stat.S_IMODE(socket_dir.stat().st_mode) == 0o700
        assert works(url)
    socket_dir.chmod(0o755)
    with pytest.raises(DatabaseUnavailable, match="must be a directory of the embedded database's OS user alone"):
        server.start()
    shutil.rmtree(socket_dir)


@pytest.mark.system
@as_root
def test_below_a_closed_directory_the_files_go_elsewhere_and_no_permission_is_widened(home: Path) -> None:
    home.chmod(0o700)
    system_dir = Path(tempfile.mkdtemp(prefix="evenflow-system-"))
    system_dir.chmod(0o755)
    cluster = place_cluster(home, system_dir)
    try:
        assert cluster.parent == system_dir
        assert (home / "postgres").resolve() == cluster
        assert place_cluster(home, system_dir) == cluster
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        assert works(EmbeddedPostgres(home, overrides=FAST).start())
    finally:
        EmbeddedPostgres(home).stop()
        shutil.rmtree(system_dir)


@pytest.mark.system
@as_root
def test_programs_that_its_account_cannot_reach_are_copied_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the libraries that the wheel has beside its package: ``initdb`` does not start without."""
    closed = home / "venv"
    installed = programs.wheel_programs().parent
    package = closed / installed.parent.name
    shutil.copytree(installed, package / installed.name, ignore=shutil.ignore_patterns("include"))
    shutil.copytree(installed.parent.with_name(f"{package.name}.libs"), closed / f"{package.name}.libs")
    closed.chmod(0o700)
    monkeypatch.setattr(programs, "wheel_programs", lambda: package / installed.name / "bin")
    someone = account._system_account()
    found = find_programs(someone, system_dir=home / "system")
    assert found.directory.is_relative_to(home / "system")
    for program in ("postgres", "initdb"):
        assert "PostgreSQL" in found.run(program, "--version", failure="cannot run")
    shutil.rmtree(closed)
    monkeypatch.setattr(programs, "_copy", None)
    monkeypatch.setattr(programs, "wheel_programs", lambda: found.directory)
    (home / "system").chmod(0o700)
    assert find_programs(someone, system_dir=home / "system") == found


@as_root
def test_root_runs_the_server_as_the_owner_of_its_files(home: Path) -> None:
    (home / "postgres").mkdir()
    os.chown(home / "postgres", 1234, 1234)
    assert choose_account(home / "postgres") == account.Account(1234, 1234)


def test_of_processes_that_start_at_once_one_makes_the_account(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ``useradd`` at once leave the entry of the later, with another number than the files of the first have."""
    made: list[int] = []
    second = threading.Thread(target=account._system_account, args=[home])

    def look(name: str) -> pwd.struct_passwd:
        if not made:
            raise KeyError(name)
        return pwd.struct_passwd((name, "x", made[-1], made[-1], "", "/", "/"))

    def make() -> None:
        if second.ident is None:
            second.start()
            second.join(timeout=0.5)  # that it ends here is the error
        made.append(999 - len(made))

    monkeypatch.setattr(account, "_create_system_account", make)
    monkeypatch.setattr(pwd, "getpwnam", look)
    assert account._system_account(home) == account.Account(999, 999)
    second.join()
    assert made == [999]
