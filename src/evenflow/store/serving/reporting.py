"""Roles of PostgreSQL that read the reporting views, and that of the history pipeline, which also returns its marts. The views
themselves are the last part of ``schema.sql``.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from typing import Any, NamedTuple

import psycopg
from psycopg import sql
from psycopg.errors import InsufficientPrivilege

from evenflow.core.settings import RETENTION_AWAITS_EXPORT
from evenflow.errors import BadValue
from evenflow.store.db.notify import INBOX
from evenflow.store.db.rows import execute
from evenflow.store.serving.events import record

SCHEMA = "evenflow_reporting_v1"
WRITTEN = ("exported", "mart")  # by the pipeline
PASSWORD_BYTES = 24  # as hard to guess as a key of 192 bits


class Granted(NamedTuple):
    schema: str
    views: int
    password: str | None  # of a role that was made for this


def grant_reading(conn: psycopg.Connection[Any], role: str, *, by: str) -> Granted:
    """Lets a role read the views, and makes it if it does not exist. Raises :class:`BadValue` when it cannot be made, or could do
    more: then nothing has changed. Needs no superuser, only the owner of the schema, and CREATEROLE to make a role.
    """
    with conn.transaction():
        password = None if _exists(conn, role) else _log_in(conn, "create", role)
        views = _let_read(conn, role, ())
        record(conn, by, "db.reporting", role)
    return Granted(SCHEMA, views, password)


def grant_returning(conn: psycopg.Connection[Any], role: str, *, by: str) -> Granted:
    """Lets the role of the history pipeline read the views and write its marts, with a new password, and has retention await its
    exports. The role is made when it is not there. Raises :class:`BadValue` as :func:`grant_reading` does.
    """
    with conn.transaction():
        password = _log_in(conn, "alter" if _exists(conn, role) else "create", role)
        tables = sql.SQL(", ").join(map(sql.Identifier, WRITTEN))
        conn.execute(sql.SQL("grant select, insert, update on {} to {}").format(tables, sql.Identifier(role)))
        views = _let_read(conn, role, WRITTEN)
        execute(conn, "settings/lock_all", {})
        execute(conn, "settings/set_one", {"name": RETENTION_AWAITS_EXPORT, "value": "true", "actor": by})
        execute(conn, "inbox/notify", {"channel": INBOX})
        record(conn, by, "db.history", role)
    return Granted(SCHEMA, views, password)


def _exists(conn: psycopg.Connection[Any], role: str) -> bool:
    return execute(conn, "reporting/find_role", {"role": role}).fetchone() is not None


def _let_read(conn: psycopg.Connection[Any], role: str, tables: Collection[str]) -> int:
    """Answers how many views. Raises :class:`BadValue` when the role can do more than read them and write to these ``tables``."""
    name, schema = sql.Identifier(role), sql.Identifier(SCHEMA)
    conn.execute(sql.SQL("grant usage on schema {} to {}").format(schema, name))
    conn.execute(sql.SQL("grant select on all tables in schema {} to {}").format(schema, name))
    known = {"role": role, "schema": SCHEMA, "tables": list(tables)}
    more = [found for (found,) in execute(conn, "reporting/find_more", known).fetchall()]
    if more:
        raise BadValue(
            f"The role {role} can do more than read the reporting views, as it has rights to {', '.join(more)}, by itself or "
            "as a member of another role. Name one that has none, or one that is not there."
        )
    views = execute(conn, "reporting/count_views", {"schema": SCHEMA}).fetchone()
    assert views is not None
    return int(views[0])


def _log_in(conn: psycopg.Connection[Any], verb: str, role: str) -> str:
    """Its new password. What is sent of it cannot log in, as servers may log statements. ``verb``: create or alter."""
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    verifier = conn.pgconn.encrypt_password(password.encode(), role.encode()).decode()
    statement = sql.SQL(verb + " role {} login password {}").format(sql.Identifier(role), sql.Literal(verifier))
    try:
        conn.execute(statement)
    except InsufficientPrivilege as error:
        raise BadValue(
            f"You may make no role here ({error.diag.message_primary}). Have it made by who may, with: "
            f"create role {role} login password '...'; then type this again."
        ) from None
    except psycopg.Error as error:
        raise BadValue(f"The role {role!r} cannot be made: {error.diag.message_primary}. Name another one.") from None
    return password
