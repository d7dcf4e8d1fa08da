"""Roles of PostgreSQL that read the reporting views and nothing else. The views themselves are the last part of ``schema.sql``."""

from __future__ import annotations

import secrets
from typing import Any, NamedTuple

import psycopg
from psycopg import sql
from psycopg.errors import InsufficientPrivilege

from evenflow.errors import BadValue
from evenflow.store.db.rows import execute
from evenflow.store.serving.events import record

SCHEMA = "evenflow_reporting_v1"
PASSWORD_BYTES = 24  # as hard to guess as a key of 192 bits


class Granted(NamedTuple):
    schema: str
    views: int
    password: str | None  # of a role that was made for this


def grant_reading(conn: psycopg.Connection[Any], role: str, *, by: str) -> Granted:
    """Lets a role read the views, and makes it when it is not there. Raises :class:`BadValue` when it cannot be made, or could do
    more: then nothing has changed. No superuser is needed, only who owns the schema, and to make a role CREATEROLE.
    """
    with conn.transaction():
        exists = execute(conn, "reporting/find_role", {"role": role}).fetchone() is not None
        password = None if exists else _create(conn, role)
        name, schema = sql.Identifier(role), sql.Identifier(SCHEMA)
        conn.execute(sql.SQL("grant usage on schema {} to {}").format(schema, name))
        conn.execute(sql.SQL("grant select on all tables in schema {} to {}").format(schema, name))
        more = [found for (found,) in execute(conn, "reporting/find_more", {"role": role, "schema": SCHEMA}).fetchall()]
        if more:
            raise BadValue(
                f"The role {role} can do more than read the reporting views, as it has rights to {', '.join(more)}, by itself or "
                "as a member of another role. Name one that has none, or one that is not there."
            )
        views = execute(conn, "reporting/count_views", {"schema": SCHEMA}).fetchone()
        assert views is not None
        record(conn, by, "db.reporting", role)
    return Granted(SCHEMA, views[0], password)


def _create(conn: psycopg.Connection[Any], role: str) -> str:
    """Its password. What is sent of it cannot log in, as servers may log statements."""
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    verifier = conn.pgconn.encrypt_password(password.encode(), role.encode()).decode()
    statement = sql.SQL("create role {} login password {}").format(sql.Identifier(role), sql.Literal(verifier))
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
