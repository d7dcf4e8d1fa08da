"""Records where requests come from, for the events that they cause. Counts frequent events together: refused requests, and tasks'
questions for secrets. An event about a change or about shown data is stored before or with it, never after.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from time import monotonic
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenflow.api import limits
from evenflow.api import observations as seen
from evenflow.core.people.user_names import ASKING_DAG
from evenflow.store.db.connect import AsyncConn, AsyncPool
from evenflow.store.serving import events, tokens
from evenflow.store.serving.events import ORIGIN, Origin, RepeatedEvent
from evenflow.telemetry.observing import observe

OTHERS = "others"  # the address under which refusals are counted when too many differ
_REFUSED = (401, 403)


class Trail:
    """The counts go to the database every few seconds, and when the API ends."""

    def __init__(self, pool: AsyncPool) -> None:
        self._pool = pool
        self._counted: dict[str, RepeatedEvent] = {}
        self._minute, self._refusals = "", set[str]()
        self._used: dict[int, float] = {}  # tokens, and the time of their last event
        self._to_tell: set[int] = set()

    def used(self, token_id: int) -> None:
        """Notes that a token, or a token made from it, is in use; an event says so once an hour."""
        now = monotonic()
        if now - self._used.get(token_id, -limits.TOKEN_USED) >= limits.TOKEN_USED:
            self._used[token_id] = now
            self._to_tell.add(token_id)

    def add(self, event: RepeatedEvent) -> None:
        known = self._counted.setdefault(event.counted_as, event)
        if known is not event:
            event.times += known.times
            self._counted[event.counted_as] = event

    def refused(self, origin: Origin, status: int, reason: str) -> None:
        """Counts a refusal: one row a minute for each address and reason, and a bounded number of rows if a caller invents them."""
        reason = "".join(char if char.isprintable() else "?" for char in reason)
        minute, address = f"{datetime.now(UTC):%Y-%m-%dT%H:%M}", origin.address or "unknown"
        if minute != self._minute:
            self._minute, self._refusals = minute, set()
        what = f"{minute} {address} {status} {reason}"
        if what not in self._refusals and len(self._refusals) >= limits.REFUSALS_TOLD:
            address, reason, what = OTHERS, "too many different ones to tell", f"{minute} {OTHERS} {status}"
        else:
            self._refusals.add(what)
        detail = {"status": status, "reason": reason}
        self.add(RepeatedEvent("unknown", "login.refused", address, detail, what, origin.token_id, origin.address))

    async def serve(self) -> None:
        while True:
            await asyncio.sleep(limits.TRAIL)
            try:
                await self.flush()
            except Exception as error:  # the counts are kept for the next time
                observe(seen.events_not_stored(str(error)))

    async def flush(self) -> None:
        """Stores the counts. Those that cannot be stored are kept."""
        await self._flush_used()
        counted, self._counted = self._counted, {}
        if not counted:
            return
        try:
            async with self._pool.connection() as conn:
                await events.count(conn, list(counted.values()))
        except BaseException:
            newer, self._counted = self._counted, counted
            for event in newer.values():
                self.add(event)
            raise

    async def _flush_used(self) -> None:
        told = set(self._to_tell)
        if told:
            async with self._pool.connection() as conn:
                await tokens.mark_used(conn, told)
            self._to_tell -= told


class KnownRequests:
    """Gives each request its origin, and has the trail count refusals."""

    def __init__(self, app: ASGIApp, trail: Trail) -> None:
        self._app, self._trail = app, trail

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client")
        origin = Origin(address=client[0] if client else None)
        for name, value in scope["headers"]:
            if name == b"x-request-id":
                origin.asked_as = _plain(value)
        ORIGIN.set(origin)

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                status = origin.status or message["status"]  # a browser may be led to a page that shows the refusal
                if status in _REFUSED:
                    self._trail.refused(origin, status, origin.refused)
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            for event in origin.counted:
                self._trail.add(event)
            if origin.token_id:
                self._trail.used(origin.token_id)


def _plain(value: bytes) -> str | None:
    text = value.decode("latin-1")
    return text if 0 < len(text) <= limits.REQUEST_ID and text.isascii() and text.isprintable() else None


class AskedSecrets:
    """Records the secrets that tasks, and files while they are loaded, ask for: one row a day for each asker and secret. The first
    question is stored before the answer, in the caller's transaction. Of later questions only the count may be late.
    """

    def __init__(self) -> None:
        self._day, self._told = "", set[str]()

    async def tell(self, conn: AsyncConn, kind: str, name: str, asker: str, detail: dict[str, Any]) -> None:
        """Counts a question of a DAG, or of a file while it is loaded. Raises the database's errors; the caller must not answer
        then.
        """
        origin = ORIGIN.get() or Origin()
        if (day := f"{datetime.now(UTC):%Y-%m-%d}") != self._day:
            self._day, self._told = day, set()
        what = f"{day} {kind} {name} {asker}"
        asking = f"{ASKING_DAG}{asker}"
        event = RepeatedEvent(asking, f"{kind}.ask", name, detail, what, origin.token_id, origin.address)
        if what in self._told:
            origin.counted.append(event)
        else:
            await events.count(conn, [event])
            self._told.add(what)
