"""Tokens for tests, signed with the key of their database, which is sealed with the keys of its API."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from evenflow.api import tokens as t
from evenflow.api.vault import Vault
from evenflow.contracts.rest.tokens import GivenToken, TokenSummary
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import PersonScope, Rights, scope_text
from evenflow.core.service import TokenKind, UserCodeKind
from evenflow.runtime.tokens import token_maker
from evenflow.store.db.connect import connect_async
from evenflow.store.db.sql import sql
from evenflow.store.serving import tokens as stored
from evenflow.store.serving.tokens import KeyState

HOUR_S = 3600.0
JTI = "the name of all that tests without a database list"
LISTED = dict.fromkeys(range(10), stored.digest_of(JTI))
VIEWERS = dict.fromkeys(range(10), Rights(Role.VIEWER))  # what these may
_VAULTS: dict[str, Vault] = {}  # by database


def opened_by(vault: Vault, database_url: str) -> None:
    """The keys of this database's API, whose tokens will be needed."""
    _VAULTS[str(conninfo_to_dict(database_url)["dbname"])] = vault


def key_state(db: psycopg.Connection[Any]) -> KeyState:
    """Of a database on which an API has started."""
    row = db.execute(sql("tokens/read_keys"), {"quiet_s": 0.0}).fetchone()
    assert row is not None
    return stored.key_state(row, _VAULTS[db.info.dbname])


def _insert(
    db: psycopg.Connection[Any], kind: str, name: str, jti: str, role: Role | None = None, scope: PersonScope | None = None
) -> int:
    row = db.execute(
        "insert into token (kind, name, role, limited_to, created_by, expires_at, key_id, digest)"
        " values (%s, %s, %s, %s, 'a test', now() + interval '1 hour', 1, %s) returning token_id",
        [kind, name, role, scope_text(scope), stored.digest_of(jti)],
    ).fetchone()
    assert row is not None
    return int(row[0])


def listed(db: psycopg.Connection[Any], token: t.FleetToken | t.OperatorToken) -> str:
    """A token of this kind, under a number of its own in the list."""
    jti = t.new_jti()
    if isinstance(token, t.OperatorToken):
        number = _insert(db, "operator", token.name, jti, token.role, token.scope)
    else:
        number = _insert(db, token.kind, "of a test", jti)
    return t.mint(key_state(db), replace(token, token_id=number), ttl=HOUR_S, jti=jti)


def fleet_token(db: psycopg.Connection[Any], kind: UserCodeKind) -> str:
    """With which services of this kind register."""
    return listed(db, t.FleetToken(kind))


def service_token(db: psycopg.Connection[Any], kind: UserCodeKind, service_id: int) -> str:
    """Of one service, which came with a token of its own."""
    jti = t.new_jti()
    token = t.ServiceToken(kind, service_id, _insert(db, kind, "of a test", jti), fleet_jti=jti)
    return t.mint(key_state(db), token, ttl=t.SERVICE_TTL_S)


def operator_token(
    db: psycopg.Connection[Any], *, name: str = "ada", role: Role = Role.ADMIN, scope: PersonScope | None = None
) -> str:
    return listed(db, t.OperatorToken(name, role=role, scope=scope))


def try_token(db: psycopg.Connection[Any], token: t.TryToken) -> str:
    return t.mint(key_state(db), token, ttl=HOUR_S)


async def create_token(database_url: str, vault: Vault, kind: TokenKind, *, name: str, by: str) -> GivenToken:
    """As a command makes one, with the database alone."""
    async with token_maker(database_url, vault) as maker:
        return await maker.make(kind, name=name, by=by)


async def given_tokens(database_url: str) -> list[TokenSummary]:
    """Those in the list, the newest first."""
    async with await connect_async(database_url, name="a test") as conn:
        return [TokenSummary.model_validate(row) for row in await stored.list_tokens(conn)]


async def revoke(database_url: str, token_id: int) -> tuple[str, str] | None:
    async with await connect_async(database_url, name="a test") as conn:
        return await stored.revoke(conn, token_id, by="ada")
