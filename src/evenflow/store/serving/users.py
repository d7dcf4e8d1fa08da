"""Users: who logs in with a password, what they may, and where they are logged in."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import args_row

from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import PersonScope, Rights, scope_text
from evenflow.core.people.user_names import IDENTITY_PROVIDER
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.instant import read
from evenflow.store.db.sql import sql
from evenflow.store.serving.events import recorded


class FoundUser(NamedTuple):
    role: str
    password: str  # Argon2id of it
    is_disabled: bool


class LinkedUser(NamedTuple):
    name: str
    password: str  # as FoundUser has it
    is_disabled: bool
    is_new: bool


class NewSession(NamedTuple):
    """``user`` is the person who has shown a password, ``login_id`` the token that was shown. A token has its own role; else it is
    here.
    """

    name: str
    user: str | None
    login_id: int
    role: Role | None
    address: str = ""
    agent: str = ""
    shown: str | None = None  # what was stored of the password that the person has shown
    renewed: str | None = None  # what to store of it from now on


async def is_empty(conn: AsyncConn) -> bool:
    """Returns whether no user can log in with a password yet."""
    row = await (await conn.execute(sql("users/is_empty"))).fetchone()
    assert row is not None
    return bool(row[0])


async def insert_user(conn: AsyncConn, name: str, *, role: Role, scope: PersonScope | None, password: str, by: str) -> bool:
    """False: the name is taken. ``password`` is what is stored of the password."""
    async with conn.transaction():
        names = {"name": name, "role": role, "scope": scope_text(scope), "password": password, "by": by}
        if await (await conn.execute(sql("users/insert_one"), names)).fetchone() is None:
            return False
        async with recorded(conn, by, "user.create", name, role=role, **(scope.named if scope else {})):
            return True


async def insert_first(conn: AsyncConn, name: str, *, password: str, by: str) -> bool:
    """Makes an admin, if there are no users."""
    async with conn.transaction():
        names = {"name": name, "password": password, "by": by}
        if await (await conn.execute(sql("users/insert_first"), names)).fetchone() is None:
            return False
        async with recorded(conn, by, "user.create", name, role=Role.ADMIN):
            return True


async def link_user(conn: AsyncConn, subject: str, *, name: str, rights: Rights) -> LinkedUser | None:
    """Returns the user for ``subject``, from now on with these rights; a new user gets ``name``. None: another user has
    that name.
    """
    async with conn.transaction():
        cursor = conn.cursor(row_factory=args_row(LinkedUser))
        names = {"subject": subject, "name": name, "role": rights.role, "scope": scope_text(rights.scope), "by": IDENTITY_PROVIDER}
        found = await (await cursor.execute(sql("users/link_one"), names)).fetchone()
        if found is not None and found.is_new:
            async with recorded(conn, IDENTITY_PROVIDER, "user.create", name, role=rights.role):
                pass
        await conn.execute(sql("tokens/notify"))
        return found


async def find_user(conn: AsyncConn, name: str) -> FoundUser | None:
    return await (await conn.cursor(row_factory=args_row(FoundUser)).execute(sql("users/find_one"), {"name": name})).fetchone()


async def list_users(conn: AsyncConn, *, name: str | None = None, limit: int, after: str | None = None) -> list[Row]:
    names = {"name": name, "limit": limit, "after": after}
    return await read(conn, "users/list_all", names)


async def change_user(
    conn: AsyncConn, name: str, *, role: Role | None, scope: PersonScope | None, is_disabled: bool | None, by: str
) -> bool:
    """Changes a user; None keeps a value. False: no admin would be left, so nothing was changed. A disabled user is logged out."""
    told: dict[str, Any] = {what: value for what, value in (("role", role), ("is_disabled", is_disabled)) if value is not None}
    if scope is not None:
        told["scope"] = scope.named
    async with conn.transaction() as change, recorded(conn, by, "user.change", name, **told):
        before = await (await conn.execute(sql("users/lock_admins"))).fetchall()
        await conn.execute(
            sql("users/change_one"),
            {
                "name": name,
                "role": role,
                "has_scope": scope is not None,
                "scope": scope_text(scope),
                "is_disabled": is_disabled,
            },
        )
        row = await (await conn.execute(sql("users/count_admins"))).fetchone()
        assert row is not None
        if before and row[0] == 0:
            raise psycopg.Rollback(change)
        if is_disabled:
            await conn.execute(sql("tokens/revoke_sessions_of"), {"user": name, "kept": 0, "by": by})
        await conn.execute(sql("tokens/notify"))
        return True
    return False


async def set_password(conn: AsyncConn, name: str, password: str, *, shown: str | None = None, kept: int = 0, by: str) -> bool:
    """``password`` is what is stored of the new password. The user is logged out everywhere but in the session ``kept``. False:
    what was stored is not ``shown`` any more, so nothing was changed.
    """
    async with conn.transaction() as change, recorded(conn, by, "user.set_password", name):
        names = {"name": name, "password": password, "shown": shown}
        if await (await conn.execute(sql("users/set_password"), names)).fetchone() is None:
            raise psycopg.Rollback(change)
        await conn.execute(sql("tokens/revoke_sessions_of"), {"user": name, "kept": kept, "by": by})
        await conn.execute(sql("tokens/notify"))
        return True
    return False


async def insert_session(
    conn: AsyncConn, session: NewSession, *, ttl: float, most: int, key_id: int, digest: bytes
) -> tuple[int, datetime] | None:
    """Returns the number of a session that is good for ``ttl`` seconds, no longer than the token that it was begun with, and when
    that ends. None: the password that was shown is no longer valid. The oldest sessions beyond ``most`` of one person or token end.
    """
    names = {**session._asdict(), "ttl": ttl, "key_id": key_id, "digest": digest, "most": most}
    async with conn.transaction() as begun, recorded(conn, session.name, "token.create", session.name, kind="session") as detail:
        if session.user is not None and await (await conn.execute(sql("users/note_login"), names)).fetchone() is None:
            raise psycopg.Rollback(begun)
        row = await (await conn.execute(sql("tokens/insert_session"), names)).fetchone()
        assert row is not None
        token_id, expires_at = row
        detail["token"] = token_id
        return token_id, expires_at
    return None


async def list_sessions(
    conn: AsyncConn, *, user: str | None, login_id: int | None, session_id: int | None, limit: int, after: str | None = None
) -> list[Row]:
    """Of one user, or of one token, or all, or one of these; the newest first."""
    names = {"user": user, "login_id": login_id, "session_id": session_id, "limit": limit, "after": after}
    return await read(conn, "tokens/list_sessions", names)
