"""Answers to requests with an idempotency key, kept for those who ask again."""

from __future__ import annotations

from typing import NamedTuple

from evenflow.store.db.connect import AsyncConn
from evenflow.store.db.sql import sql


class KeyedRequest(NamedTuple):
    """A request: its key is the person's own. ``digest`` is of what it asks for."""

    person: str
    key: str
    digest: bytes


class KeptAnswer(NamedTuple):
    digest: bytes
    status: int
    location: str | None
    answer: str


async def find_kept(conn: AsyncConn, asked: KeyedRequest) -> KeptAnswer | None:
    row = await (await conn.execute(sql("answers/find_kept"), {"person": asked.person, "key": asked.key})).fetchone()
    return None if row is None else KeptAnswer(*row)


async def claim(conn: AsyncConn, asked: KeyedRequest) -> bool:
    """In the transaction of what is asked for. Waits for another request with this key; False: that has done it."""
    return (await conn.execute(sql("answers/claim"), asked._asdict())).rowcount > 0


async def keep(conn: AsyncConn, asked: KeyedRequest, *, status: int, location: str | None, answer: str) -> None:
    names = {"person": asked.person, "key": asked.key, "status": status, "location": location, "answer": answer}
    await conn.execute(sql("answers/keep"), names)
