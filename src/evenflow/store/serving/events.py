"""Who changed, requested or was refused what, and from where: an event in the transaction of each change, or a count of many."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import dict_row

from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.instant import read
from evenflow.store.db.sql import sql


@dataclass(slots=True)
class RepeatedEvent:
    """An event that comes often."""

    actor: str
    action: str
    object: str
    detail: dict[str, Any]
    counted_as: str  # equal texts share a row in a period
    token_id: int | None = None
    address: str | None = None
    times: int = 1


@dataclass(slots=True)
class Origin:
    """Of the request that is served."""

    address: str | None = None
    token_id: int | None = None
    refused: str = ""  # why
    status: int = 0  # that says so, also where the answer leads to a page that shows it; 0: nothing is refused
    asked_as: str | None = None  # the request's number, as the caller or a proxy says it
    counted: list[RepeatedEvent] = field(default_factory=list)  # events to tell when it is answered

    @property
    def request_id(self) -> str:
        if self.asked_as is None:
            self.asked_as = secrets.token_hex(8)
        return self.asked_as


ORIGIN: ContextVar[Origin | None] = ContextVar("origin", default=None)


@asynccontextmanager
async def recorded(conn: AsyncConn, actor: str, action: str, name: str, **detail: Any) -> AsyncIterator[dict[str, Any]]:
    """A transaction for a change of the object ``name``; its event is written with it, or neither is.

    ``action`` is ``kind.verb``. The dict is the event's detail, for facts that are known only when the change is done. All who may
    list events can read it, so nothing secret belongs there.
    """
    async with conn.transaction():
        yield detail
        await conn.execute(sql("events/insert_one"), names_of(actor, action, name, detail))


def record(conn: psycopg.Connection[Any], actor: str, action: str, name: str, **detail: Any) -> None:
    """For callers without an event loop. In the transaction of the caller."""
    conn.execute(sql("events/insert_one"), names_of(actor, action, name, detail))


def names_of(actor: str, action: str, name: str, detail: dict[str, Any]) -> dict[str, Any]:
    """Of an event, as its statement takes it."""
    origin = ORIGIN.get()
    return {
        "actor": actor,
        "action": action,
        "object": name,
        "detail": json.dumps(detail) if detail else None,
        "token_id": origin and origin.token_id,
        "address": origin and origin.address,
        "request_id": origin and origin.request_id,
    }


async def count(conn: AsyncConn, events: list[RepeatedEvent]) -> None:
    """Each of another ``counted_as``."""
    await conn.execute(sql("events/count"), {"events": json.dumps([asdict(event) for event in events])})


async def list_events(
    conn: AsyncConn,
    *,
    actor: str | None = None,
    action: str | None = None,
    name: str | None = None,
    scope: str | None = None,
    limit: int,
    after: str | None = None,
) -> list[Row]:
    """The newest first; ``action`` may be a kind alone, and ``name`` that of a DAG stands for its runs, too."""
    names = {"actor": actor, "action": action, "object": name, "scope": scope, "limit": limit, "after": after}
    return await read(conn, "events/list_all", names)


class ExportPlace(NamedTuple):
    """Of the event that was exported last: the transaction that wrote it, and its number."""

    xact: int = 0
    event_id: int = 0


def list_settled(conn: psycopg.Connection[Any], after: ExportPlace, *, limit: int) -> list[Row]:
    """Behind that one, in the order in which they are exported; none can come before one of these any more."""
    return conn.cursor(row_factory=dict_row).execute(sql("events/list_settled"), _settled(after, limit)).fetchall()


async def page_settled(
    conn: AsyncConn, after: ExportPlace, *, since: datetime | None, until: datetime | None, limit: int
) -> list[Row]:
    """As :func:`list_settled`, of a time."""
    names = _settled(after, limit) | {"since": since, "until": until}
    return await (await conn.cursor(row_factory=dict_row).execute(sql("events/list_settled"), names, prepare=False)).fetchall()


def _settled(after: ExportPlace, limit: int) -> dict[str, Any]:
    return {"xact": str(after.xact), "event_id": after.event_id, "since": None, "until": None, "limit": limit}


def event_text(event: Row) -> str:
    """As it is exported: JSON with sorted names, on one line, times in UTC."""
    return json.dumps(event, default=exported_value, sort_keys=True)


def exported_value(value: Any) -> str:
    """Of what JSON has no kind for."""
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else str(value)


async def read_incarnation(conn: AsyncConn) -> int:
    row = await (await conn.execute(sql("incarnation/find_newest"))).fetchone()
    assert row is not None
    return int(row[0])


def list_from(conn: psycopg.Connection[Any], *, event_id: int, limit: int) -> list[Row]:
    return conn.cursor(row_factory=dict_row).execute(sql("events/list_from"), {"event_id": event_id, "limit": limit}).fetchall()


def find_incarnation(conn: psycopg.Connection[Any]) -> int:
    row = conn.execute(sql("incarnation/find_newest")).fetchone()
    assert row is not None
    return int(row[0])
