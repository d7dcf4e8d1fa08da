"""Numbered SQL files bring a database to the schema that this Evenflow needs. All of them together equal ``schema.sql``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import psycopg

from evenflow.errors import DatabaseNotMigrated, DatabaseTooNew
from evenflow.store.sql import sql

_FILE_NAME = re.compile(r"(?P<version>\d{4})_(?P<name>[a-z0-9_]+)\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    statements: bytes = field(repr=False)


@cache
def migrations() -> tuple[Migration, ...]:
    """All that exist, oldest first; versions run from 1 without a gap (a test holds that)."""
    directory = files("evenflow.store") / "migrations"
    matches = [match for file in directory.iterdir() if (match := _FILE_NAME.fullmatch(file.name))]
    found = [Migration(int(match["version"]), match["name"], (directory / match.string).read_bytes()) for match in matches]
    return tuple(sorted(found, key=lambda migration: migration.version))


SCHEMA_VERSION = migrations()[-1].version


def migrate(conn: psycopg.Connection[Any]) -> list[Migration]:
    """Bring the database to ``SCHEMA_VERSION`` and return what was applied, each migration in a transaction of its own.

    Several may call this at once: one works, the others wait and find it done. Raises :class:`DatabaseTooNew`.
    """
    applied = []
    for migration in migrations():
        with conn.transaction():
            conn.execute(sql("schema/lock_migrations"))
            found = version(conn)
            if found > SCHEMA_VERSION:
                raise DatabaseTooNew(found, SCHEMA_VERSION)
            if found < migration.version:
                conn.execute(migration.statements)
                conn.execute(sql("schema/record_version"), {"version": migration.version, "name": migration.name})
                applied.append(migration)
    return applied


def check(conn: psycopg.Connection[Any]) -> None:
    """Returns when the database has exactly the schema that this Evenflow knows, else raises :class:`DatabaseNotMigrated` or
    :class:`DatabaseTooNew`."""
    found = version(conn)
    if found < SCHEMA_VERSION:
        raise DatabaseNotMigrated(found, SCHEMA_VERSION)
    if found > SCHEMA_VERSION:
        raise DatabaseTooNew(found, SCHEMA_VERSION)


def version(conn: psycopg.Connection[Any]) -> int:
    """The schema version of the database; 0 when nothing was ever applied."""
    exists = conn.execute(sql("schema/find_version_table")).fetchone()
    if exists is None or exists[0] is None:
        return 0
    row = conn.execute(sql("schema/read_version")).fetchone()
    return int(row[0]) if row else 0
