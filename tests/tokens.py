"""Tokens for tests, signed with the key of their database, which is sealed with the keys of its API."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from evenflow.api import tokens as t
from evenflow.api.vault import Vault
from evenflow.store import tokens as stored
from evenflow.store.sql import sql
from evenflow.store.tokens import KeyState

HOUR_S = 3600.0
_VAULTS: dict[str, Vault] = {}  # by database


def opened_by(vault: Vault, database_url: str) -> None:
    """The keys of this database's API, whose tokens will be needed."""
    _VAULTS[str(conninfo_to_dict(database_url)["dbname"])] = vault


def key_state(db: psycopg.Connection[Any]) -> KeyState:
    """Of a database on which an API has started."""
    row = db.execute(sql("tokens/read_keys"), {"quiet_s": 0.0}).fetchone()
    assert row is not None
    sealed, revoked, lapsed, incarnation, quiet_s, installation = row
    vault = _VAULTS[db.info.dbname]
    keys = {int(number): bytes.fromhex(vault.open(stored.KEY, number, bytes.fromhex(value))) for number, value in sealed.items()}
    return KeyState(installation, keys, frozenset(revoked), incarnation, quiet_s, frozenset(lapsed))


def fleet_token(db: psycopg.Connection[Any], kind: t.ServiceKind) -> str:
    """With which services of this kind register."""
    return t.mint(key_state(db), t.FleetToken(kind), ttl=HOUR_S)


def service_token(db: psycopg.Connection[Any], kind: t.ServiceKind, service_id: int) -> str:
    """Of one service."""
    return t.mint(key_state(db), t.ServiceToken(kind, service_id), ttl=t.SERVICE_TTL_S)


def operator_token(db: psycopg.Connection[Any], *, name: str = "ada") -> str:
    return t.mint(key_state(db), t.OperatorToken(name), ttl=HOUR_S)


def try_token(db: psycopg.Connection[Any], token: t.TryToken) -> str:
    return t.mint(key_state(db), token, ttl=HOUR_S)
