"""Task logs on their way to the control plane, while the tasks run, or wait.

Each try, and each claim of a trigger, has a stream of bytes with an offset. What has been sent stays until the API says how far it
has stored, so nothing is lost or doubled when an answer is. A stream that holds too much asks its writer to wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import structlog

from evenflow.errors import ApiRefused, ApiUnavailable
from evenflow.process import limits
from evenflow.process.patience import Patience
from evenflow.wire.messages import REFUSED_LOG, LogChunk, Logs, LogsAnswer

log = structlog.get_logger(__name__)


class LogApi(Protocol):
    async def send_logs(self, message: Logs) -> LogsAnswer: ...


class LogStream:
    """The log of one try. ``on_full`` is told whether the stream holds too much, when that changes."""

    def __init__(self, token: str, shipper: LogShipper, on_full: Callable[[bool], None]) -> None:
        self.token = token
        self._shipper, self._on_full = shipper, on_full
        self._offset = 0  # stored by the API
        self._held = bytearray()  # from there on
        self._full = self._closed = self._refused = False
        self._emptied: asyncio.Event | None = None  # of who waits for it

    def write(self, data: bytes) -> None:
        if not self._refused:
            self._held += data
            self._shipper.news(self, eager=self.eager)
            self._tell_full()

    def close(self) -> None:
        """Nothing more will be written soon: send what there is."""
        self._closed = True
        if self._held:
            self._shipper.news(self, eager=True)

    async def shipped(self) -> None:
        """Returns when all that was written is stored or refused."""
        while self._held:
            self._emptied = self._emptied or asyncio.Event()
            await self._emptied.wait()

    def discard(self) -> None:
        """The API does not want this log."""
        self._refused = True
        self._held.clear()
        self._tell_full()

    @property
    def held(self) -> int:
        return len(self._held)

    @property
    def full(self) -> bool:
        """Whether it holds too much."""
        return self._full

    @property
    def eager(self) -> bool:
        """Whether what is held should not wait for more."""
        return self._closed or len(self._held) >= limits.LOG_EAGER

    def chunk(self) -> LogChunk:
        return LogChunk(token=self.token, offset=self._offset, data=bytes(self._held[: limits.LOG_CHUNK]))

    def stored(self, sent: LogChunk, offset: int) -> None:
        """The API has stored this log up to ``offset``."""
        if offset == REFUSED_LOG:
            self.discard()
        elif offset < sent.offset:  # it has lost what it had: go on there, and say so
            self._held[:0] = f"\n-- {sent.offset - offset} bytes of this log were lost by the server. --\n".encode()
            self._offset = offset
        else:
            del self._held[: offset - self._offset]
            self._offset = offset
        self._tell_full()

    def _tell_full(self) -> None:
        if not self._held and self._emptied is not None:
            self._emptied.set()
            self._emptied = None
        full = len(self._held) >= (limits.LOG_EAGER if self._full else limits.LOG_HELD)
        if full is not self._full:
            self._full = full
            self._on_full(full)


class LogShipper:
    def __init__(self, api: LogApi) -> None:
        self._api = api
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[LogStream, None] = {}  # streams that hold something, the longest waiting first
        self._wake = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._patience = Patience()
        self._shipped = asyncio.Event()
        self._shipped.set()
        self._left = False  # more waits than one request carries

    def open(self, token: str, on_full: Callable[[bool], None]) -> LogStream:
        return LogStream(token, self, on_full)

    def news(self, stream: LogStream, *, eager: bool) -> None:
        """``stream`` holds something to send: now if ``eager``, else within a moment."""
        self._waiting.setdefault(stream)
        self._shipped.clear()
        if eager:
            self._wake.set()
        elif self._timer is None:
            self._timer = self._loop.call_later(limits.LOG_DELAY, self._ring)

    @property
    def held(self) -> int:
        """Bytes that wait to be stored."""
        return sum(stream.held for stream in list(self._waiting))

    async def shipped(self) -> None:
        """Returns when all that was written is stored or refused."""
        await self._shipped.wait()

    async def run(self) -> None:
        """Send for ever."""
        while True:
            if not self._waiting:
                self._shipped.set()
            await self._wake.wait()
            self._wake.clear()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            batch = self._take()
            if batch and not await self._send(batch):
                await self._patience.wait()
            else:
                self._patience.renew()
            for stream, _ in batch:
                if stream.held:
                    self.news(stream, eager=stream.eager)
            if self._left:
                self._wake.set()

    def _ring(self) -> None:
        self._timer = None
        self._wake.set()

    def _take(self) -> list[tuple[LogStream, LogChunk]]:
        """What one request carries of what is held by now."""
        batch, size = [], 0
        for stream in list(self._waiting):
            if size >= limits.LOG_REQUEST:
                break
            del self._waiting[stream]
            if stream.held:
                chunk = stream.chunk()
                size += len(chunk.data)
                batch.append((stream, chunk))
        self._left = bool(self._waiting)
        return batch

    async def _send(self, batch: list[tuple[LogStream, LogChunk]]) -> bool:
        """Whether the API has answered."""
        try:
            answer = await self._api.send_logs(Logs(chunks=[chunk for _, chunk in batch]))
        except ApiUnavailable as error:
            log.warning("logs wait for the API", tries=len(batch), reason=str(error))
            return False
        except ApiRefused as error:
            if error.status >= 500 or error.status in (401, 403):  # not about these logs
                log.warning("logs refused", tries=len(batch), reason=str(error))
                return False
            log.error("logs lost", tries=len(batch), reason=str(error))
            for stream, _ in batch:
                stream.discard()
            return True
        for (stream, chunk), offset in zip(batch, answer.offsets, strict=True):
            stream.stored(chunk, offset)
        return True
