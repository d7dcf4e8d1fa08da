"""The PostgreSQL that is measured: an embedded one made for the occasion, or any other by its URL."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol
from unittest.mock import patch

import measure
import psutil
import psycopg
from psycopg import conninfo

from evenflow.runtime.embedded import EmbeddedPostgres
from evenflow.runtime.embedded.account import Account
from evenflow.store.db.connect import UNBOUNDED, connect
from evenflow.store.db.migrate import migrate


class Server(Protocol):
    def url(self, database: str) -> str: ...

    def processes(self) -> list[psutil.Process]:
        """All of its processes; none when it runs on another machine."""
        ...


class Embedded:
    """A server with the settings that users get, durability on."""

    def __init__(self, server: EmbeddedPostgres) -> None:
        self._server = server

    def url(self, database: str) -> str:
        return self._server.url(database)

    def processes(self) -> list[psutil.Process]:
        postmaster = self._server.running()
        return measure.tree(postmaster.pid) if postmaster else []


class Given:
    """A server of which the URL is known, of a role that may create databases. Only databases ``evenflow_bench_*`` are touched."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    def url(self, database: str) -> str:
        name = database if database == "postgres" else f"evenflow_bench_{database}"
        return conninfo.make_conninfo(self._dsn, dbname=name)

    def processes(self) -> list[psutil.Process]:
        with psycopg.connect(self.url("postgres")) as conn:
            host = conn.info.hostaddr or conn.info.host
            if not (host.startswith(("/", "127.")) or host == "::1"):
                return []
            try:
                backend = psutil.Process(conn.info.backend_pid)
                postmaster = backend.parent()
                return measure.tree(postmaster.pid) if postmaster and backend.name() == "postgres" else []
            except psutil.NoSuchProcess:  # behind a proxy, or in a container
                return []


@contextmanager
def serve(dsn: str | None) -> Iterator[Server]:
    """The server ``dsn``, or an embedded one that is gone afterwards."""
    if dsn is not None:
        yield Given(dsn)
        return
    with tempfile.TemporaryDirectory(prefix="evenflow-bench-") as directory:
        home = Path(directory)
        home.chmod(0o755)
        server = EmbeddedPostgres(home)
        with server.lease():
            yield Embedded(server)


@contextmanager
def preloaded(environment: Mapping[str, str]) -> Iterator[None]:
    """What an embedded server runs that is started meanwhile has this environment, too."""
    own = Account.run_as

    def run_as(account: Account) -> dict[str, Any]:
        options = own(account)
        return {**options, "env": {**options["env"], **environment}}

    with patch.object(Account, "run_as", run_as):
        yield


def open_connection(url: str, name: str, *, generic_plans: bool = False) -> psycopg.Connection[Any]:
    """Without the product's timeouts: what fills or watches a database may take its time. ``generic_plans`` as a scheduler has."""
    return connect(url, name=name, timeouts=UNBOUNDED, generic_plans=generic_plans)


def fresh_database(server: Server, database: str) -> str:
    """The URL of a database that has been made anew and migrated."""
    url = server.url(database)
    name = conninfo.conninfo_to_dict(url)["dbname"]
    with open_connection(server.url("postgres"), "bench") as conn:
        conn.execute(f'drop database if exists "{name}" with (force)')
        conn.execute(f'create database "{name}"')
    with open_connection(url, "bench") as conn:
        migrate(conn)
    return url


@contextmanager
def open_snapshot(url: str, *, wanted: bool = True) -> Iterator[None]:
    """Another session that holds a snapshot all the while, as a forgotten transaction does: nothing that dies can be cleaned."""
    if not wanted:
        yield
        return
    with open_connection(url, "snapshot") as conn:
        conn.execute("begin isolation level repeatable read")
        conn.execute("select count(*) from dag_run")
        yield
        conn.execute("rollback")
