"""The first user, for whoever can reach the database: no API is needed."""

from __future__ import annotations

import asyncio

from evenflow.store.db.connect import connect_async
from evenflow.store.serving import users

FIRST = "admin"


async def has_users(database_url: str) -> bool:
    async with await connect_async(database_url, name="users") as conn:
        return not await users.is_empty(conn)


async def make_first(database_url: str, *, by: str) -> str | None:
    """The password of an admin who is made where there is no user; it is stored nowhere."""
    if await has_users(database_url):
        return None
    from evenflow.api.rest.passwords import hashed, new_password  # Argon2 is for a new database alone

    password = new_password()
    stored = await asyncio.to_thread(hashed, password)
    async with await connect_async(database_url, name="users") as conn:
        return password if await users.insert_first(conn, FIRST, password=stored, by=by) else None
