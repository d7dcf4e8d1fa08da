"""Tells open pages how logs grow. All that look at a log share its readings: each place of it is waited for once, and the state of
its try is asked for once in a while, however many look.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import msgspec

from evenflow.api import limits
from evenflow.api.kept import SharedReading, SharedWaits
from evenflow.api.logs.growth import find_try, whole_characters
from evenflow.api.logs.store import LogName, LogStore
from evenflow.api.refusals import Refused, no_dag
from evenflow.api.streams.pages import NOTHING, PageStream
from evenflow.store.db.connect import AsyncPool
from evenflow.store.serving import views

_CURSOR = re.compile(r"([1-9]\d{0,8}):(\d{1,18})")  # a try, and the bytes of its log that were heard


class HeardLog(NamedTuple):
    """Up to where a page has heard a log."""

    try_number: int
    offset: int


class _Growth(NamedTuple):
    message: bytes  # empty: nothing has come
    offset: int
    complete: bool


def place_of(cursor: str) -> HeardLog:
    """Raises :class:`Refused` for a cursor that cannot be the id of an event of such a stream."""
    if found := _CURSOR.fullmatch(cursor):
        return HeardLog(int(found[1]), int(found[2]))
    raise Refused(422, "bad_value", "Last-Event-ID is the id of an event of this stream, and nothing else.")


class FollowedLog:
    """A log that pages with one scope look at."""

    def __init__(self, pool: AsyncPool, logs: LogStore, name: LogName, scope: str | None) -> None:
        self.pages = 0
        self._pool, self._logs, self._name, self._scope = pool, logs, name, scope
        self._over = SharedReading(self._read_state, kept_s=limits.LOG_STATE_CHECK, at_most_s=limits.LOG_WAIT)
        self._waits: SharedWaits[_Growth] = SharedWaits()

    async def after(self, offset: int) -> _Growth:
        """Returns what follows, as soon as there is something, and nothing after ``limits.LOG_STATE_CHECK`` seconds."""
        return await self._waits.get(offset, partial(self._read, offset))

    async def _read(self, offset: int) -> _Growth:
        clock = asyncio.get_running_loop().time
        is_over = await self._over.get()  # before the log: what is stored later is not the end of what was
        deadline = clock() + (0.0 if is_over else limits.LOG_STATE_CHECK)
        begun = 0  # bytes of a character whose other bytes are awaited
        while True:
            part = await self._logs.wait(self._name, offset, deadline - clock(), begun)
            complete = is_over and part.at_end
            data = part.data if complete else whole_characters(part.data)
            if data or complete or clock() >= deadline:
                return self._told(offset, data, part.size, complete=complete)
            begun = len(part.data)

    def _told(self, offset: int, data: bytes, size: int, *, complete: bool) -> _Growth:
        messages: list[bytes] = []
        while data or (complete and not messages):
            piece = data[: limits.LIVE_LOG_TEXT]
            if len(piece) < len(data):
                piece = whole_characters(piece) or piece
            data, offset = data[len(piece) :], offset + len(piece)
            said = {"text": piece.decode(errors="replace"), "offset": offset, "size": size, "complete": complete and not data}
            messages.append(b"id: %d:%d\nevent: log\ndata: %s\n\n" % (self._name.try_number, offset, msgspec.json.encode(said)))
        return _Growth(b"".join(messages), offset, complete)

    async def _read_state(self) -> bool:
        name = self._name
        async with self._pool.connection() as conn:
            if self._scope is not None and not await views.has_dag(conn, name.dag_id, scope=self._scope):
                raise no_dag(name.dag_id)
            _, is_over = await find_try(conn, name.dag_id, name.run_id, name.task_id, name.map_index, name.try_number)
        return is_over


class GrowingLogStream(PageStream):
    """Ends by itself after the end of the log."""

    def __init__(self, log: FollowedLog, offset: int) -> None:
        super().__init__()
        self._log, self._offset = log, offset

    async def heard(self) -> bytes:
        """Raises :class:`EvenflowError` when the log is gone, or out of the reader's scope."""
        clock = asyncio.get_running_loop().time
        until = clock() + limits.LIVE_BEAT
        while not self.closed and clock() < until:
            grown = await self._log.after(self._offset)
            self._offset = grown.offset
            if grown.complete:
                self.close()
            if grown.message:
                return grown.message
        return NOTHING


class LogStreams:
    """Of one API process."""

    def __init__(self, pool: AsyncPool, logs: LogStore) -> None:
        self._pool, self._logs = pool, logs
        self._followed: dict[tuple[LogName, str | None], FollowedLog] = {}

    @contextmanager
    def stream(self, name: LogName, offset: int, scope: str | None) -> Iterator[GrowingLogStream]:
        key = (name, scope)
        log = self._followed.setdefault(key, FollowedLog(self._pool, self._logs, name, scope))
        log.pages += 1
        try:
            yield GrowingLogStream(log, offset)
        finally:
            log.pages -= 1
            if not log.pages:
                del self._followed[key]
