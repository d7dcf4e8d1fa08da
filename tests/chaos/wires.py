"""TCP between processes that can be cut, stalled, and made deaf in one direction. All of them run in one thread.

A wire listens on a port of its own and leads to the first of its upstreams that answers, the next one first each time.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Callable, Coroutine, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
Upstream = Path | int  # a socket in the file system, or a port of this host
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]

READ_BYTES = 65_536


class Mode(StrEnum):
    OPEN = "open"
    CUT = "cut"  # connections are reset, and so are new ones
    STALLED = "stalled"  # nothing arrives, in either direction; what was sent arrives when it is open again
    HALF_OPEN = "half-open"  # what is sent arrives, its answers do not


class Wires:
    """The thread. Use as a context."""

    def __enter__(self) -> Wires:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="wires", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def lay(self, upstreams: Callable[[], Sequence[Upstream]]) -> Wire:
        """A new wire, which asks for its upstreams at each connection."""
        wire = Wire(self, upstreams)
        self.run(wire.open())
        return wire

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Wire:
    def __init__(self, wires: Wires, upstreams: Callable[[], Sequence[Upstream]]) -> None:
        self._wires, self._upstreams = wires, upstreams
        self._turns = itertools.count()
        self._mode = Mode.OPEN
        self._writers: set[asyncio.StreamWriter] = set()
        self._there, self._back = asyncio.Event(), asyncio.Event()
        self.port = 0

    async def open(self) -> None:
        self._there.set()
        self._back.set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def set(self, mode: Mode) -> None:
        self._wires.run(self._set(mode))

    def close(self) -> None:
        self.set(Mode.CUT)
        self._wires.run(self._close())

    async def _close(self) -> None:
        self._server.close()

    async def _set(self, mode: Mode) -> None:
        self._mode = mode
        for event, flows in ((self._there, mode is not Mode.STALLED), (self._back, mode not in (Mode.STALLED, Mode.HALF_OPEN))):
            event.set() if flows else event.clear()
        if mode is Mode.CUT:
            for writer in list(self._writers):
                writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            if self._mode is Mode.CUT or (upstream := await self._connect()) is None:
                writer.transport.abort()
                return
            self._writers.add(upstream[1])
            try:
                await asyncio.gather(
                    self._pump(reader, upstream[1], self._there),
                    self._pump(upstream[0], writer, self._back),
                )
            finally:
                upstream[1].transport.abort()
                self._writers.discard(upstream[1])
        finally:
            writer.transport.abort()
            self._writers.discard(writer)

    async def _connect(self) -> Ends | None:
        await self._there.wait()
        upstreams = list(self._upstreams())
        turn = next(self._turns)
        for position in range(len(upstreams)):
            upstream = upstreams[(turn + position) % len(upstreams)]
            with contextlib.suppress(OSError):
                if isinstance(upstream, Path):
                    return await asyncio.open_unix_connection(str(upstream))
                return await asyncio.open_connection("127.0.0.1", upstream)
        return None

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flows: asyncio.Event) -> None:
        with contextlib.suppress(OSError):
            while True:
                data = await reader.read(READ_BYTES)
                await flows.wait()
                if not data:
                    break
                writer.write(data)
                await writer.drain()
        with contextlib.suppress(OSError, RuntimeError):
            if writer.can_write_eof():
                writer.write_eof()
