"""Makes the first user, with access to the database only: no API is needed."""

from __future__ import annotations

import asyncio

from evenflow.store.db.connect import connect_async
from evenflow.store.serving import users

FIRST = "admin"


async def has_users(database_url: str) -> bool:
    async with await connect_async(database_url, name="users") as conn:
        return not await users.is_empty(conn)


async def make_first(database_url: str, *, by: str) -> str | None:
    """Makes an admin if there is no user. Returns the password, which is stored nowhere."""
    if await has_users(database_url):
        return None
    from evenflow.api.rest.passwords import hashed, new_password  # only a new database needs Argon2

    password = new_password()
    stored = await asyncio.to_thread(hashed, password)
    async with await connect_async(database_url, name="users") as conn:
        return password if await users.insert_first(conn, FIRST, password=stored, by=by) else None
