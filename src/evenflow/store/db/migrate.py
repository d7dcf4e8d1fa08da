"""An empty database gets ``schema.sql``; numbered SQL files bring on one that is there, and together they reach ``schema.sql``.

Until the first release ``schema.sql`` alone exists, and is edited in place: a database that another text of it made is refused. The
release freezes that text as the first of the numbered files.

Releases overlap while a system is upgraded, so most migrations only *expand*: what older programs know stays as it was, and they
continue. A migration that takes something away *contracts*. It begins with a line ``-- works from: N``: from then on a program must
know the schema N at least, and each program that is too old refuses, by :func:`check`. A release states the other end, too:
``OLDEST_SCHEMA`` is the oldest schema on which its programs work.

A migration needs locks that conflict with every transaction, and later transactions wait behind it. So it waits for a lock for an
instant only, and tries again: a running system does not notice.
"""

from __future__ import annotations

import hashlib
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import psycopg

from evenflow.core.limits import LEASE_S
from evenflow.errors import (
    ContractNeeded,
    DatabaseNotMigrated,
    DatabaseOfDevelopment,
    DatabaseTooNew,
    MigrationBlocked,
    OldServicesRun,
)
from evenflow.store.db.sql import sql

FIRST_SCHEMA = 6  # what schema.sql is; those before were of development
OLDEST_SCHEMA = 6  # on which this release works

LOCK_TIMEOUT_MS = 500  # under the second after which PostgreSQL looks for deadlocks: it is the migration that gives way
ATTEMPTS = 60  # about a minute: longer than any transaction of ours may last
PAUSE_S = 1.0  # for the transactions that queued up behind the migration

_FILE_NAME = re.compile(r"(?P<version>\d{4})_(?P<name>[a-z0-9_]+)\.sql")
_WORKS_FROM = re.compile(rb"^-- works from: (\d+)$", re.MULTILINE)


class Steps(Enum):
    """How far to go. An empty database is always brought to the end."""

    EXPAND = auto()  # up to the first migration that older programs do not survive
    CONTRACT = auto()  # to the end, if no such program runs
    ALONE = auto()  # to the end: no other process uses this database


@dataclass(frozen=True, slots=True)
class Migration:
    """``works_from``: the schema that a program must know to work after it; 0: as before."""

    version: int
    name: str
    works_from: int
    statements: bytes = field(repr=False)

    def __str__(self) -> str:
        return f"{self.version:04}_{self.name}"


class Migrated(NamedTuple):
    applied: list[Migration]
    left: list[Migration]  # they contract


class Schema(NamedTuple):
    """Of a database. ``works_from``: what a program has to know to work on it; ``began_as``: the name of its first migration."""

    version: int = 0
    works_from: int = 0
    began_as: str = ""


@cache
def migrations() -> tuple[Migration, ...]:
    """All that exist, oldest first; versions run from ``FIRST_SCHEMA`` without a gap (a test holds that)."""
    store = files("evenflow.store")
    schema = (store / "schema.sql").read_bytes()
    first = Migration(FIRST_SCHEMA, f"initial_{hashlib.sha256(schema).hexdigest()[:12]}", 0, schema)
    directory = store / "migrations"
    names = [file.name for file in directory.iterdir()] if directory.is_dir() else []
    matches = [match for name in names if (match := _FILE_NAME.fullmatch(name))]
    found = [_read(int(match["version"]), match["name"], (directory / match.string).read_bytes()) for match in matches]
    return (first, *sorted(found, key=lambda migration: migration.version))


def _read(version: int, name: str, statements: bytes) -> Migration:
    works_from = _WORKS_FROM.search(statements)
    return Migration(version, name, int(works_from[1]) if works_from else 0, statements)


SCHEMA_VERSION = migrations()[-1].version


def migrate(conn: psycopg.Connection[Any], steps: Steps = Steps.EXPAND, *, pause: Callable[[float], None] = time.sleep) -> Migrated:
    """Bring the database to ``SCHEMA_VERSION``, or as far as ``steps`` says, each migration in a transaction of its own.

    Several may call this at once: one works, the others wait and find it done. Raises :class:`DatabaseTooNew`;
    :class:`ContractNeeded` when ``steps`` ends where this release cannot work yet; :class:`OldServicesRun`; and
    :class:`MigrationBlocked`. What was applied before stays.
    """
    conn.execute(sql("schema/lock_migrations"))
    try:
        found = read_schema(conn)
        _refuse_foreign(found)
        if found.version == 0:
            steps = Steps.ALONE
        applied: list[Migration] = []
        left = [migration for migration in migrations() if migration.version > found.version]
        while left and not (left[0].works_from and steps is Steps.EXPAND):
            if left[0].works_from and steps is Steps.CONTRACT:
                _refuse_while_older_run(conn, left[0])
            _apply(conn, left[0], pause)
            applied.append(left.pop(0))
    finally:
        conn.execute(sql("schema/unlock_migrations"))
    if left and left[0].version <= OLDEST_SCHEMA:
        raise ContractNeeded(str(left[0]), left[0].works_from)
    return Migrated(applied, left)


def check(conn: psycopg.Connection[Any]) -> None:
    """Returns when this release works on the database, else raises :class:`DatabaseNotMigrated` or :class:`DatabaseTooNew`."""
    _judge(read_schema(conn))


async def check_async(conn: psycopg.AsyncConnection[Any]) -> None:
    """As :func:`check`, of a database that was migrated once."""
    row = await (await conn.execute(sql("schema/read_version"))).fetchone()
    _judge(Schema(*row) if row else Schema())


def read_schema(conn: psycopg.Connection[Any]) -> Schema:
    """All zeros when nothing was ever applied."""
    exists = conn.execute(sql("schema/find_version_table")).fetchone()
    if exists is None or exists[0] is None:
        return Schema()
    row = conn.execute(sql("schema/read_version")).fetchone()
    return Schema(*row) if row else Schema()


def _judge(found: Schema) -> None:
    if found.version == 0 or FIRST_SCHEMA <= found.version < OLDEST_SCHEMA:
        raise DatabaseNotMigrated(found.version, OLDEST_SCHEMA)
    _refuse_foreign(found)


def _refuse_foreign(found: Schema) -> None:
    if found.version and found.began_as != migrations()[0].name:
        raise DatabaseOfDevelopment
    if found.works_from > SCHEMA_VERSION:
        raise DatabaseTooNew(found.version, needed=found.works_from, known=SCHEMA_VERSION)


def _refuse_while_older_run(conn: psycopg.Connection[Any], migration: Migration) -> None:
    older = conn.execute(sql("schema/find_older_services"), {"works_from": migration.works_from, "lease_s": LEASE_S}).fetchall()
    if older:
        raise OldServicesRun(
            str(migration),
            [f"{kind} {name} on {host} (Evenflow {release}, knows schema {known})" for kind, name, host, release, known in older],
        )


def _apply(conn: psycopg.Connection[Any], migration: Migration, pause: Callable[[float], None]) -> None:
    for _ in range(ATTEMPTS):
        try:
            with conn.transaction():
                conn.execute(sql("schema/limit_lock_waits"), {"timeout": f"{LOCK_TIMEOUT_MS}ms"})
                conn.execute(migration.statements)
                conn.execute(sql("schema/record_version"), {"version": migration.version, "name": migration.name})
                if migration.works_from:
                    conn.execute(
                        sql("schema/record_works_from"), {"version": migration.version, "works_from": migration.works_from}
                    )
                return
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            pause(PAUSE_S * random.uniform(0.5, 1.5))
    oldest = conn.execute(sql("schema/find_old_transactions")).fetchall()
    raise MigrationBlocked(str(migration), [f"{name or 'unnamed'} (pid {pid}, for {age:.0f} s)" for pid, name, age in oldest])
