"""A standby of an embedded server, for tests of fail-over: it follows, loses touch, and takes over."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import psycopg
from psycopg import conninfo

from evenflow.runtime.embedded import EmbeddedPostgres
from evenflow.runtime.embedded.account import choose_account, place_cluster
from evenflow.runtime.embedded.configuration import write_configuration
from evenflow.runtime.embedded.programs import Programs, find_programs
from tests.waiting import wait_until

HBA = "local replication postgres trust\nlocal all all scram-sha-256\n"
ATTACHED = "select count(*) from pg_stat_replication where application_name = 'standby'"
CAUGHT_UP = f"{ATTACHED} and state = 'streaming' and replay_lsn >= %s::pg_lsn"
SYNCHRONOUS = {"synchronous_standby_names": "'standby'"}


def replicating(home: Path) -> dict[str, str]:
    """Settings with which the server of this home lets standbys follow."""
    file = home / "hba.conf"
    file.write_text(HBA)
    file.chmod(0o644)
    return {"hba_file": f"'{file}'"}


class Standby:
    """Of a server that was started with :func:`replicating`. ``settings`` are those of both, ``home`` is a fresh directory, and
    ``stop_at`` is when it stops at the latest.
    """

    def __init__(self, primary: EmbeddedPostgres, home: Path, settings: Mapping[str, str], *, stop_at: ExitStack) -> None:
        self.primary = primary
        self._primary_settings = {**settings, **replicating(primary.home)}
        self._settings = {**settings, **replicating(home)}
        postmaster = primary.running()
        assert postmaster is not None
        self._follows = f"'host={postmaster.socket_dir} port=5432 user=postgres application_name=standby'"
        self.server = EmbeddedPostgres(home, overrides={**self._settings, "primary_conninfo": self._follows})
        stop_at.callback(self.server.stop)
        self._programs = self._copy(postmaster.socket_dir)
        self.server.start()

    def _copy(self, socket_dir: Path) -> Programs:
        home, cluster = self.server.home, place_cluster(self.server.home)
        account = choose_account(cluster)
        programs = find_programs(account)
        where = ("-h", socket_dir, "-p", "5432", "-U", "postgres")
        programs.run("pg_basebackup", "-D", cluster / "data", *where, "-c", "fast", "--no-sync", failure="no base backup")
        follows = cluster / "data" / "standby.signal"
        follows.touch()
        account.own(follows)
        shutil.copy(self.primary.home / "postgres.password", home / "postgres.password")
        return programs

    def catch_up(self) -> None:
        """Returns when it has all that the primary had when this was called."""
        with psycopg.connect(self.primary.url(), autocommit=True) as conn:
            (here,) = _one(conn, "select pg_current_wal_flush_lsn()::text")
            wait_until(lambda: _one(conn, CAUGHT_UP, here)[0], "a standby that has caught up")

    def be_waited_for(self) -> None:
        """From now on every commit waits until it is here."""
        _set(self._programs, self.primary, {**self._primary_settings, **SYNCHRONOUS})
        with psycopg.connect(self.primary.url(), autocommit=True) as conn:
            wait_until(lambda: _one(conn, f"{ATTACHED} and sync_state = 'sync'")[0], "a synchronous standby")

    def lose_touch(self) -> None:
        """What the primary commits from now on never gets here."""
        _set(self._programs, self.server, {**self._settings, "primary_conninfo": "''"})
        with psycopg.connect(self.primary.url(), autocommit=True) as conn:
            wait_until(lambda: not _one(conn, ATTACHED)[0], "a standby that has lost touch")

    def take_over(self) -> None:
        """The primary dies with all its processes, and the standby is promoted at once."""
        kill(self.primary)
        self.promote()

    def promote(self) -> None:
        self._programs.run("pg_ctl", "promote", "-w", "-D", self.server.cluster / "data", failure="no promotion")

    def url(self, database: str) -> str:
        """Of both, the primary first."""
        mine = conninfo.conninfo_to_dict(self.server.url(database))
        first = conninfo.conninfo_to_dict(self.primary.url(database))
        return conninfo.make_conninfo(**{**mine, "host": f"{first['host']},{mine['host']}", "port": "5432,5432"})


def kill(server: EmbeddedPostgres) -> None:
    postmaster = server.running()
    assert postmaster is not None
    own = psutil.Process(postmaster.pid)
    killed = [own, *own.children()]
    for process in killed:
        process.send_signal(signal.SIGKILL)
    psutil.wait_procs(killed, timeout=10)  # a new one refuses to start while the old pid is known


def _set(programs: Programs, server: EmbeddedPostgres, settings: Mapping[str, str]) -> None:
    postmaster = server.running()
    assert postmaster is not None
    data = server.cluster / "data"
    write_configuration(data, socket_dir=postmaster.socket_dir, log_dir=server.cluster / "log", overrides=settings)
    programs.run("pg_ctl", "reload", "-D", data, failure="no reload")


def _one(conn: psycopg.Connection[Any], query: str, *args: Any) -> tuple[Any, ...]:
    row = conn.execute(query, args).fetchone()
    assert row is not None
    return row
