"""Tells open pages of pools, executors, queues and what waits for them. One reading serves all streams of a scope, while there are
any; notifications cause readings, and a sweep finds what changes without one.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterator
from hashlib import blake2b

from evenflow.api import limits
from evenflow.api import observations as seen
from evenflow.api.capacity import read_pools, read_push_executors, read_queues, with_troubles
from evenflow.api.refusals import Refused
from evenflow.api.streams.pages import ToldStream
from evenflow.contracts.rest.capacity import Capacity
from evenflow.explaining.plan import read_plan
from evenflow.store.db.connect import AsyncPool
from evenflow.telemetry.observing import observe

_DIGEST = 16  # bytes
_CURSOR = re.compile(f"[0-9a-f]{{{2 * _DIGEST}}}")


def check_cursor(cursor: str) -> None:
    """Raises :class:`Refused` for a cursor that cannot be the id of an event of such a stream."""
    if not _CURSOR.fullmatch(cursor):
        raise Refused(422, "bad_value", "Last-Event-ID is the id of an event of this stream, and nothing else.")


class CapacityStream(ToldStream):
    """Of a page that knows what has the id ``known``: only something else is told, and of several things the newest."""

    def __init__(self, scope: str | None, known: str | None) -> None:
        super().__init__()
        self.scope = scope
        self._known, self._message = known, b""

    def tell(self, digest: str, message: bytes) -> None:
        if digest != self._known:
            self._known, self._message = digest, message
            self._signal.set()

    def _taken(self) -> bytes:
        message, self._message = self._message, b""
        return message


class CapacityStreams:
    """Of one API process."""

    def __init__(self, pool: AsyncPool) -> None:
        self._pool = pool
        self._streams: set[CapacityStream] = set()
        self._signal = asyncio.Event()

    def wake(self) -> None:
        """Says that something may have changed."""
        if self._streams:
            self._signal.set()

    @contextlib.contextmanager
    def stream(self, scope: str | None, known: str | None) -> Iterator[CapacityStream]:
        stream = CapacityStream(scope, known)
        self._streams.add(stream)
        self._signal.set()
        try:
            yield stream
        finally:
            self._streams.discard(stream)

    async def serve(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limits.LIVE_CAPACITY_SWEEP if self._streams else None):
                    await self._signal.wait()
            self._signal.clear()
            began = clock()
            try:
                for scope in {stream.scope for stream in self._streams}:
                    self._tell(scope, await self._read(scope))
            except Exception as error:  # the next look tells it
                observe(seen.capacity_not_read(str(error)))
            await asyncio.sleep(max(limits.LIVE_CAPACITY_PAUSE, limits.LIVE_REST * (clock() - began)))

    def _tell(self, scope: str | None, capacity: Capacity) -> None:
        said = capacity.model_dump_json().encode()
        digest = blake2b(said, digest_size=_DIGEST).hexdigest()
        message = b"id: %s\nevent: capacity\ndata: %s\n\n" % (digest.encode(), said)
        for stream in self._streams:
            if stream.scope == scope:
                stream.tell(digest, message)

    async def _read(self, scope: str | None) -> Capacity:
        async with self._pool.connection() as conn:
            pushed = await read_push_executors(conn, scope=scope)
            return Capacity(
                pools=await read_pools(conn, scope=scope),
                executors=await with_troubles(conn, pushed, scope=scope),
                queues=await read_queues(conn, scope=scope),
                push_executors=pushed,
                plan=await read_plan(conn, limit=limits.LIVE_LANES, scope=scope),
            )
