"""A PostgreSQL of its own, which the fault suite may kill, and in it a migrated database to copy."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg

from evenflow.runtime.embedded import EmbeddedPostgres
from evenflow.runtime.embedded.account import Account
from evenflow.store.db.connect import UNBOUNDED, connect, connect_async
from evenflow.store.db.migrate import migrate
from evenflow.store.serving import pools
from tests.chaos.clock import Clock, compile_clock
from tests.chaos.leases import LEASES
from tests.chaos.nursery import Nursery
from tests.standby import Standby, replicating

TEMPLATE = "chaos_template"
DURABLE = {"max_connections": "300", "log_min_duration_statement": "-1"}
# A process that is killed loses nothing that the kernel has: only a power cut needs fsync.
SETTINGS = {**DURABLE, "fsync": "off"}


@dataclass(slots=True)
class ChaosServer:
    """``template`` is the database to copy. Without a C compiler there are no clocks to move."""

    postgres: EmbeddedPostgres  # the primary, which may be another one after a fail-over
    settings: Mapping[str, str]
    template: str
    clock: Clock | None
    hosts_clock: Clock | None  # of all services and tasks
    nursery: Nursery
    end: contextlib.ExitStack

    def follow(self) -> Standby:
        """A standby of the primary, from now on."""
        return Standby(self.postgres, _home(self.end), self.settings, stop_at=self.end)


@contextlib.contextmanager
def chaos_server(*, leases: Mapping[str, float] = LEASES, settings: Mapping[str, str] = SETTINGS) -> Iterator[ChaosServer]:
    """``leases`` as :mod:`tests.chaos.leases` says; with none the product has its own."""
    with contextlib.ExitStack() as stack:
        home = _home(stack)
        server = EmbeddedPostgres(home, overrides={**settings, **replicating(home)})
        library = compile_clock(home)
        clock, hosts = (None, None) if library is None else (Clock(library, home / "clock"), Clock(library, home / "hosts-clock"))
        stack.callback(server.stop)
        if clock is not None:
            stack.enter_context(_preloaded(clock))
        nursery = Nursery(hosts.environment if hosts else {}, leases)
        stack.callback(nursery.close)
        server.start()
        with psycopg.connect(server.url("postgres"), autocommit=True) as conn:
            conn.execute(f"create database {TEMPLATE}")
        with connect(server.url(TEMPLATE), name="chaos", timeouts=UNBOUNDED) as conn:
            migrate(conn)
        asyncio.run(_make_pool(server.url(TEMPLATE)))
        yield ChaosServer(server, settings, TEMPLATE, clock, hosts, nursery, stack)


def _home(stack: contextlib.ExitStack) -> Path:
    home = Path(tempfile.mkdtemp(prefix="evenflow-chaos-db-"))
    home.chmod(0o755)
    stack.callback(shutil.rmtree, home, ignore_errors=True)
    return home


@contextlib.contextmanager
def _preloaded(clock: Clock) -> Iterator[None]:
    """What the embedded server runs has this clock."""
    own = Account.run_as

    def run_as(account: Account) -> dict[str, Any]:
        options = own(account)
        return {**options, "env": {**options["env"], **clock.environment}}

    with patch.object(Account, "run_as", run_as):
        yield


async def _make_pool(url: str) -> None:
    """The pool that the workload names."""
    async with await connect_async(url, name="chaos") as conn:
        await pools.set_pool(conn, "narrow", slots=2, description=None, policy=None)
