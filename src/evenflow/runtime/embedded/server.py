"""Starts, shares and stops the embedded server.

Theory of operation
-------------------
Every start and stop of the server happens under one lock (``run/postgres.lock``). Each process that uses the server holds a
*lease*: a shared lock on ``run/postgres.leases``, which the kernel frees when the process ends, however it ends. The last one to
give back its lease stops the server, unless ``keep`` was asked for (``evenflow db start``). A killed process gives back nothing;
the server that it leaves behind runs on, and the next user adopts it.

Below the cluster directory (``account.place_cluster``) lie ``data``, ``socket`` and ``log``. A data directory is prepared as
``data.new`` and renamed when it is complete, so one that exists can be started.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

import psutil

from evenflow.errors import DatabaseUnavailable
from evenflow.runtime.embedded.account import Account, choose_account, place_cluster
from evenflow.runtime.embedded.configuration import write_configuration
from evenflow.runtime.embedded.programs import MAJOR, Programs, find_programs
from evenflow.runtime.home import write_secret

ROLE = DATABASE = "evenflow"
LEFT_BEHIND_S = 60  # for processes of a server that was killed to notice: they look when they next wait for something
_LEFT_BEHIND = ("pre-existing shared memory block", 'lock file "postmaster.pid" already exists')  # said while such are there
START_TIMEOUT_S = 120  # crash recovery reads at most max_wal_size (2 GB) of WAL
STOP_TIMEOUT_S = 30  # a checkpoint of 128 MB of buffers; after that the server stops at once and recovers at its next start
SOCKET_PATH_MAX = 107  # the kernel's limit for a socket's path, in bytes
_SOCKET_NAME = ".s.PGSQL.5432"
_NO_OVERRIDES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Postmaster:
    """A running server, as its ``postmaster.pid`` describes it."""

    pid: int
    socket_dir: Path
    ready: bool


class EmbeddedPostgres:
    """The server of one Evenflow home.

    ``overrides`` are settings of the server that differ from ``configuration.SETTINGS``; they apply to a server that is started
    here, not to a running one.
    """

    def __init__(self, home: Path, *, overrides: Mapping[str, str] = _NO_OVERRIDES) -> None:
        self.home = home
        self._overrides = overrides
        self._run_dir = home / "run"
        self._password_file = home / "postgres.password"

    # -- what is there ------------------------------------------------------------------------------------------------

    @property
    def cluster(self) -> Path:
        """The place of the server's files; it need not exist."""
        entry = self.home / "postgres"
        return entry.resolve() if entry.is_symlink() else entry

    def running(self) -> Postmaster | None:
        """Returns the server, if its process lives."""
        data = self.cluster / "data"
        try:
            lines = (data / "postmaster.pid").read_text().splitlines()
            pid = int(lines[0])
            if Path(psutil.Process(pid).cwd()) != data.resolve():  # the pid of a dead server, used again
                return None
        except (FileNotFoundError, PermissionError, psutil.Error, ValueError, IndexError):
            return None
        socket_dir = Path(lines[4].strip()) if len(lines) > 4 and lines[4].strip() else self._socket_dir()
        return Postmaster(pid, socket_dir, ready=len(lines) > 7 and lines[7].strip() == "ready")

    def url(self, database: str = DATABASE) -> str:
        """Returns the URL, whether the server runs or not. Raises :class:`DatabaseUnavailable` when it was never started."""
        if not self._password_file.exists():
            cure = "evenflow db stop, then: evenflow db start" if self.running() else "evenflow db start"
            raise DatabaseUnavailable(f"{self._password_file}, the password of the embedded database, does not exist. Type: {cure}")
        postmaster = self.running()
        socket_dir = postmaster.socket_dir if postmaster else self._socket_dir()
        password = self._password_file.read_text().strip()
        return f"postgresql://{ROLE}:{quote(password, safe='')}@/{database}?host={quote(str(socket_dir), safe='')}&port=5432"

    # -- start and stop -----------------------------------------------------------------------------------------------

    def start(self, *, keep: bool = False) -> str:
        """Ensures that the server runs and accepts connections, and returns its URL. With ``keep`` it runs until :meth:`stop`."""
        with self._locked():
            self._ensure_running()
            if keep:
                self._keep_file.touch()
        return self.url()

    def stop(self) -> bool:
        """Stops the server, even if it is in use. Returns whether there was one."""
        with self._locked():
            self._keep_file.unlink(missing_ok=True)
            return self._stop()

    @contextlib.contextmanager
    def lease(self) -> Iterator[str]:
        """Yields the URL of a server that runs at least until the context is left."""
        with self._locked():
            self._ensure_running()
            lease = os.open(self._run_dir / "postgres.leases", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(lease, fcntl.LOCK_SH)
        try:
            yield self.url()
        finally:
            with self._locked():
                try:
                    fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    pass  # others use it
                else:
                    if not self._keep_file.exists():
                        self._stop()
                finally:
                    os.close(lease)

    # -- under the lock -----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self._run_dir.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._run_dir / "postgres.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @property
    def _keep_file(self) -> Path:
        return self._run_dir / "postgres.keep"

    def _ensure_running(self) -> None:
        postmaster = self.running()
        if postmaster is None:
            cluster = place_cluster(self.home)
            programs = find_programs(choose_account(cluster))
            if not (cluster / "data").exists():
                self._create(cluster, programs)
            elif not self._password_file.exists():
                self._replace_lost_password(cluster / "data", programs)
            self._start(cluster, programs)
        elif not postmaster.ready:
            self._wait_until_ready(postmaster.pid)

    def _create(self, cluster: Path, programs: Programs) -> None:
        new = cluster / "data.new"
        shutil.rmtree(new, ignore_errors=True)
        arguments: list[str | Path] = ["-D", new, "-U", "postgres", "--auth=peer", "--encoding=UTF8", "--no-instructions"]
        arguments += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
        if self._overrides.get("fsync") == "off":
            arguments.append("--no-sync")
        programs.run("initdb", *arguments, failure="The embedded database cannot be created")
        password = secrets.token_urlsafe(24)
        # The superuser gets no password, so no client can log in as it.
        statements = [
            f"create role {ROLE} login createdb createrole password '{password}'",
            f"grant pg_monitor to {ROLE}",
            f"create database {DATABASE} owner {ROLE}",
        ]
        programs.execute_alone(new, statements)
        write_secret(self._password_file, password)
        new.rename(cluster / "data")

    def _replace_lost_password(self, data: Path, programs: Programs) -> None:
        password = secrets.token_urlsafe(24)
        programs.execute_alone(data, [f"alter role {ROLE} password '{password}'"])
        write_secret(self._password_file, password)

    def _start(self, cluster: Path, programs: Programs) -> None:
        data = cluster / "data"
        found = (data / "PG_VERSION").read_text().strip()
        if found != str(MAJOR):
            raise DatabaseUnavailable(
                f"The embedded database in {data} is of PostgreSQL {found}, the installed server is {MAJOR}. Dump it with the "
                "Evenflow that made it (evenflow db psql), set EVENFLOW_HOME to a new directory, and load it there."
            )
        socket_dir, log_dir = self._socket_dir(), cluster / "log"
        for directory in (socket_dir, log_dir):
            _make_private(directory, programs.account)
        write_configuration(data, socket_dir=socket_dir, log_dir=log_dir, overrides=self._overrides)
        early_log = log_dir / "start.log"
        early_log.unlink(missing_ok=True)
        deadline = time.monotonic() + LEFT_BEHIND_S
        while True:
            try:
                programs.run("pg_ctl", "start", "-w", "-s", "-t", str(START_TIMEOUT_S), "-D", data, "-l", early_log, failure="")
            except DatabaseUnavailable:
                if time.monotonic() < deadline and _complaint(early_log).startswith(_LEFT_BEHIND):
                    time.sleep(0.2)
                    continue
                said = _last_words(early_log, log_dir)
                raise DatabaseUnavailable(f"The embedded PostgreSQL does not start: {said}. Its logs are in {log_dir}.") from None
            return

    def _stop(self) -> bool:
        if self.running() is None:
            return False
        programs = find_programs(choose_account(self.cluster))
        arguments: list[str | Path] = ["stop", "-w", "-s", "-t", str(STOP_TIMEOUT_S), "-D", self.cluster / "data"]
        try:
            programs.run("pg_ctl", *arguments, "-m", "fast", failure="")
        except DatabaseUnavailable:
            programs.run("pg_ctl", *arguments, "-m", "immediate", failure="The embedded PostgreSQL does not stop")
        return True

    def _wait_until_ready(self, pid: int) -> None:
        """Waits while the server starts, or recovers from a crash."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            postmaster = self.running()
            if postmaster is None:
                return self._ensure_running()
            if postmaster.ready:
                return None
            time.sleep(0.05)
        raise DatabaseUnavailable(
            f"The embedded PostgreSQL (pid {pid}) is not ready after {START_TIMEOUT_S} s. Its logs are in {self.cluster / 'log'}."
        )

    def _socket_dir(self) -> Path:
        """Returns a directory in the cluster if the path fits, else one in the system's temporary directory, named by the
        cluster.
        """
        inside = self.cluster / "socket"
        if len(os.fsencode(inside / _SOCKET_NAME)) <= SOCKET_PATH_MAX:
            return inside
        name = hashlib.sha256(os.fsencode(self.cluster)).hexdigest()[:16]
        return Path("/tmp") / f"evenflow-{name}"


def _make_private(directory: Path, account: Account) -> None:
    """Makes a directory that only the account may enter. In a shared place another user could have made it before: then it
    refuses.
    """
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o700)
        account.own(directory)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != account.uid or found.st_mode & 0o077:
        raise DatabaseUnavailable(f"{directory} must be a directory of the embedded database's OS user alone (0700). Remove it.")


def _last_words(*places: Path) -> str:
    """Returns the last complaint in the server's newest log."""
    logs = [log for place in places for log in ([place] if place.is_file() else place.glob("postgresql-*.log"))]
    newest_first = sorted(logs, key=lambda log: log.stat().st_mtime, reverse=True)
    return next(filter(None, map(_complaint, newest_first)), "it left no message")


def _complaint(log: Path) -> str:
    """Returns the last one in a log; empty when there is none."""
    lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
    complaints = [line for line in lines if "FATAL:" in line or "PANIC:" in line]
    return complaints[-1].partition(":  ")[2] or complaints[-1] if complaints else ""
