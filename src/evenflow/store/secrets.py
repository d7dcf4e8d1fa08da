"""Keys that services share."""

from __future__ import annotations

import secrets
from typing import Any

from psycopg import AsyncConnection

from evenflow.store.sql import sql

TOKEN_KEY = "token_key"
KEY_BYTES = 32  # what HS256 asks for


async def token_key(conn: AsyncConnection[Any]) -> bytes:
    """The key that signs tokens. The first who asks makes it."""
    names = {"name": TOKEN_KEY, "value": secrets.token_bytes(KEY_BYTES)}
    while True:
        row = await (await conn.execute(sql("secrets/read_or_make"), names)).fetchone()
        if row is not None:
            return bytes(row[0])
