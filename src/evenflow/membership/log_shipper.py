"""Sends task logs to the control plane, while the tasks run or wait.

Sent bytes are kept until the API says how far it has stored them, so a lost answer neither loses nor doubles any. While the API is
away all logs wait. A log that the API cannot store is set aside and tried again after a pause, so that it delays no other.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from evenflow.errors import ApiRefused, ApiUnavailable, LogsNotStored
from evenflow.membership import limits
from evenflow.membership import observations as seen
from evenflow.membership.backoff import Backoff
from evenflow.membership.log_stream import LogStream
from evenflow.telemetry.observing import observe
from evenflow.wire.messages import LogChunk, Logs, LogsAnswer

Chunks = Sequence[tuple[LogStream, LogChunk]]


class LogApi(Protocol):
    async def send_logs(self, message: Logs) -> LogsAnswer: ...


class LogShipper:
    def __init__(self, api: LogApi) -> None:
        self._api = api
        self._loop = asyncio.get_running_loop()
        self._streams: dict[LogStream, None] = {}  # streams with unsent bytes, the oldest first
        self._waiting: dict[LogStream, None] = {}  # of these, to be sent, the longest waiting first
        self._aside: dict[LogStream, None] = {}  # of these, refused, to be sent after a pause
        self._refused_since: float | None = None  # nothing has been stored since then
        self._complaint = ""  # the last reason that was logged
        self._wake = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._absence, self._refusals = Backoff(), Backoff()
        self._returning: asyncio.Task[None] | None = None
        self._shipped = asyncio.Event()
        self._shipped.set()
        self._left = False  # more is waiting than one request carries
        self.lost = 0  # dropped bytes

    def open(self, token: str, on_full: Callable[[bool], None] | None) -> LogStream:
        return LogStream(token, self, on_full)

    def news(self, stream: LogStream) -> None:
        """``stream`` has something to send: at once if it is eager, else within a moment."""
        self._streams.setdefault(stream)
        self._shipped.clear()
        if stream in self._aside:
            return
        self._waiting.setdefault(stream)
        if stream.eager:
            self._wake.set()
        elif self._timer is None:
            self._timer = self._loop.call_later(limits.LOG_DELAY, self._ring)

    def dropped(self, size: int) -> None:
        self.lost += size

    @property
    def held(self) -> int:
        """Bytes that wait to be stored."""
        return sum(stream.held for stream in list(self._streams))

    async def shipped(self) -> None:
        """Returns when all that was written is stored, refused, or given up."""
        await self._shipped.wait()

    async def run(self) -> None:
        """Sends until it is cancelled."""
        try:
            while True:
                if all(stream.settled for stream in self._streams):
                    self._shipped.set()
                await self._wake.wait()
                self._wake.clear()
                if self._timer is not None:
                    self._timer.cancel()
                    self._timer = None
                await self._send_some()
                if self._left:
                    self._wake.set()
        finally:
            if self._returning is not None:
                self._returning.cancel()
            if unsent := [stream for stream in self._streams if stream.unsent]:
                observe(seen.logs_lost_at_end(len(unsent), self.held))

    def _ring(self) -> None:
        self._timer = None
        self._wake.set()

    async def _send_some(self) -> None:
        batch = self._take()
        if batch and not await self._send(batch):
            await self._absence.wait()
        else:
            self._absence.renew()
        for stream, _ in batch:
            if not stream.unsent:
                self._streams.pop(stream, None)
            elif stream not in self._aside:
                self.news(stream)

    def _take(self) -> Chunks:
        """Returns what one request carries of the waiting bytes."""
        batch: list[tuple[LogStream, LogChunk]] = []
        size = 0
        for stream in list(self._waiting):
            if size >= limits.LOG_REQUEST or len(batch) >= limits.LOG_CHUNKS:
                break
            del self._waiting[stream]
            if stream.unsent:
                chunk = stream.chunk()
                size += len(chunk.data)
                batch.append((stream, chunk))
            else:
                self._streams.pop(stream, None)
        self._left = bool(self._waiting)
        return batch

    async def _send(self, batch: Chunks) -> bool:
        """Returns whether the API has answered."""
        try:
            answer = await self._api.send_logs(Logs(chunks=[chunk for _, chunk in batch]))
        except ApiUnavailable as error:
            observe(seen.logs_wait(len(batch), str(error)))
            return False
        except LogsNotStored as error:
            self._stored_in_part(batch, error)
            return True
        except ApiRefused as error:
            if error.status in (401, 403):  # not about these logs
                observe(seen.logs_refused(len(batch), str(error)))
                return False
            return await self._refused(batch, error)
        self._stored(batch, answer.offsets)
        return True

    def _stored(self, batch: Chunks, offsets: Sequence[int]) -> None:
        if any(stream.refused for stream, _ in batch):
            self._refusals.renew()
            self._complaint = ""
        if self._refused_since is not None:
            observe(seen.logs_stored_again(round(time.monotonic() - self._refused_since, 1)))
            self._refused_since = None
        for (stream, chunk), offset in zip(batch, offsets, strict=True):
            stream.stored(chunk, offset)

    def _stored_in_part(self, batch: Chunks, error: LogsNotStored) -> None:
        """Keeps what the API stored of a batch as done; the rest is tried again after a pause."""
        pairs = list(zip(batch, error.offsets, strict=True))
        if any(offset > chunk.offset for (_, chunk), offset in pairs):
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = time.monotonic()
        for (stream, chunk), offset in pairs:
            stream.stored(chunk, offset)
        self._set_aside([stream for (stream, chunk), offset in pairs if 0 <= offset < chunk.offset + len(chunk.data)], str(error))

    async def _refused(self, batch: Chunks, error: ApiRefused) -> bool:
        """Sends the logs of a refused batch one by one, because one of them may be the cause. Each is then taken or refused
        alone.
        """
        if len(batch) > 1:
            return all([await self._send([one]) for one in batch])
        if error.status >= 500:
            self._set_aside([stream for stream, _ in batch], str(error))
        else:
            observe(seen.logs_lost(1, str(error)))
            for stream, chunk in batch:
                stream.drop_sent(chunk, str(error))
            self._set_aside([stream for stream, _ in batch if stream.unsent], str(error))
        return True

    def _set_aside(self, streams: Sequence[LogStream], reason: str) -> None:
        if streams and reason != self._complaint:
            observe(seen.logs_not_stored(len(streams), self.held, reason))
            self._complaint = reason
        since = self._refused_since or time.monotonic()
        for stream in streams:
            stream.refuse(since, reason)
            self._aside.setdefault(stream)
        self._make_room(reason)
        if self._returning is None and self._aside:
            self._returning = self._loop.create_task(self._return_after_a_pause())

    def _make_room(self, reason: str) -> None:
        """Drops the oldest bytes of logs that cannot be stored."""
        held = self.held
        for stream in list(self._streams):
            if held <= limits.LOG_SPOOL:
                break
            held -= stream.held
            if stream.held:
                stream.drop(stream.held, reason)
        if (silent := len(self._streams) - limits.LOG_STREAMS) > 0:
            observe(seen.logs_lost_unsaid(silent, reason))
            for stream in list(self._streams)[:silent]:
                stream.discard()
                self._streams.pop(stream)
                self._aside.pop(stream, None)

    async def _return_after_a_pause(self) -> None:
        await self._refusals.wait()
        self._returning = None
        streams, self._aside = self._aside, {}
        for stream in streams:
            self.news(stream)
        self._wake.set()
