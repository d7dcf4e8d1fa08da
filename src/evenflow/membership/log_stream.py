"""The log of one writer on its way to the control plane: bytes that are not stored yet, and bytes that had to be dropped.

Every byte that the writer writes keeps its position. Dropped bytes leave a gap between positions, and the API that stores the bytes
behind the gap sees it. So the count of missing bytes is right, whichever server has which part.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from evenflow.membership import limits
from evenflow.wire.messages import REFUSED_LOG, LogChunk, LostLog

_TOO_FAST = "it was written faster than it could be stored"


class LogSender(Protocol):
    def news(self, stream: LogStream) -> None: ...

    def dropped(self, size: int) -> None: ...


@dataclass(slots=True)
class Loss:
    """What was lost directly before the held bytes."""

    bytes: int
    lines: int
    first_at: float  # when its first byte was written, by the monotonic clock
    last_at: float
    reason: str

    def told(self) -> LostLog:
        now = time.monotonic()
        since, until = int(now - self.first_at), int(now - self.last_at)
        return LostLog(bytes=self.bytes, lines=self.lines, since=since, until=until, reason=self.reason)


class LogStream:
    """Calls ``on_full`` when the stream becomes too full, and when it no longer is; without it the writer cannot wait.

    While no API can store it, a stream holds what it may and has its writer wait, for a bearable time. After that it drops the
    older half whenever it holds too much.
    """

    def __init__(self, token: str, sender: LogSender, on_full: Callable[[bool], None] | None) -> None:
        self.token = token
        self._sender, self._on_full = sender, on_full
        self._offset = 0  # of the first held byte
        self._held = bytearray()
        self._written: deque[tuple[int, float]] = deque()  # when the held bytes were written: positions, a second or more apart
        self._loss: Loss | None = None
        self._refused_since: float | None = None
        self._reason = _TOO_FAST
        self._full = self._closed = self._discarded = False
        self._settled: asyncio.Event | None = None  # for callers that wait for it

    def write(self, data: bytes) -> None:
        if self._discarded or not data:
            return
        now = time.monotonic()
        if not self._written or now - self._written[-1][1] >= 1.0:
            self._written.append((self._end, now))
        self._held += data
        if len(self._held) >= limits.LOG_HELD and (self._on_full is None or self.given_up):
            self.drop(len(self._held) - limits.LOG_HELD // 2, self._reason)
        self._sender.news(self)
        self._tell()

    def close(self) -> None:
        """Says that the writer will soon stop: sends all that there is."""
        self._closed = True
        if self.unsent:
            self._sender.news(self)

    async def shipped(self) -> None:
        """Returns when all that was written is stored, refused, or given up."""
        while not self.settled:
            self._settled = self._settled or asyncio.Event()
            await self._settled.wait()

    def discard(self) -> None:
        """Drops the log, because the API does not want it."""
        self._discarded, self._loss = True, None
        self._held.clear()
        self._tell()

    @property
    def held(self) -> int:
        return len(self._held)

    @property
    def unsent(self) -> bool:
        return bool(self._held) or self._loss is not None

    @property
    def given_up(self) -> bool:
        """Whether the log was refused for so long that its writer no longer waits."""
        return self._refused_since is not None and time.monotonic() - self._refused_since >= limits.LOG_PATIENCE

    @property
    def settled(self) -> bool:
        return not self._held or self.given_up

    @property
    def refused(self) -> bool:
        """Whether no API could store what was sent last."""
        return self._refused_since is not None

    @property
    def eager(self) -> bool:
        """Whether the held bytes should be sent without waiting for more."""
        return self._closed or len(self._held) >= limits.LOG_EAGER

    def chunk(self) -> LogChunk:
        data = bytes(self._held[: limits.LOG_CHUNK])
        return LogChunk(token=self.token, offset=self._offset, data=data, lost=None if self._loss is None else self._loss.told())

    def stored(self, sent: LogChunk, offset: int) -> None:
        """Notes that the API has this log up to ``offset``, or that its last part ends there, before ``sent`` begins."""
        if offset == REFUSED_LOG:
            self.discard()
            return
        if offset > sent.offset or (offset == sent.offset and sent.lost is not None):
            self._refused_since, self._reason = None, _TOO_FAST
        if offset >= self._offset:
            self._loss = None
            self._forget(min(offset - self._offset, len(self._held)))
        self._tell()

    def refuse(self, since: float, reason: str) -> None:
        """Notes that sent bytes are not stored. ``since`` is when that began."""
        self._refused_since, self._reason = self._refused_since or since, reason
        if self.given_up and len(self._held) >= limits.LOG_HELD:
            self.drop(len(self._held) - limits.LOG_HELD // 2, reason)
        self._tell()

    def drop(self, size: int, reason: str) -> None:
        """Drops the first ``size`` bytes of the held ones, or slightly fewer, to keep a line whole."""
        size = min(size, len(self._held))
        if size < len(self._held):
            size = self._held.rfind(b"\n", 0, size) + 1 or size
        since, lines = self._written[0][1], self._held.count(b"\n", 0, size)
        while len(self._written) > 1 and self._written[1][0] < self._offset + size:
            self._written.popleft()
        loss = self._loss or Loss(0, 0, since, since, reason)
        self._loss = Loss(loss.bytes + size, loss.lines + lines, loss.first_at, self._written[0][1], reason)
        self._forget(size)
        self._sender.dropped(size)
        self._tell()

    def drop_sent(self, chunk: LogChunk, reason: str) -> None:
        """Drops ``chunk``, which the API will never take."""
        left = chunk.offset + len(chunk.data) - self._offset
        if left > 0:
            self.drop(left, reason)
        elif self._closed and not self._held:  # not even a loss is left to report
            self.discard()

    @property
    def _end(self) -> int:
        return self._offset + len(self._held)

    def _forget(self, size: int) -> None:
        del self._held[:size]
        self._offset += size
        while len(self._written) > 1 and self._written[1][0] <= self._offset:
            self._written.popleft()
        if not self._held:
            self._written.clear()

    def _tell(self) -> None:
        if self._settled is not None and self.settled:
            self._settled.set()
            self._settled = None
        full = len(self._held) >= (limits.LOG_EAGER if self._full else limits.LOG_HELD) and not self.given_up
        if full is not self._full:
            self._full = full
            if self._on_full is not None:
                self._on_full(full)
