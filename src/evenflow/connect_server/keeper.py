"""Keeps one server: started when a session is wanted, ended after a long time without one, killed when it is too large or
frozen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from evenflow.connect_server import observations as seen
from evenflow.connect_server.jvm import ServerProcess
from evenflow.connect_server.limits import FROZEN, HEAP, LOOK, PAUSE, STARTS
from evenflow.errors import EvenflowError, SparkUnavailable
from evenflow.spark.local_server import TOO_LARGE
from evenflow.telemetry.observing import observe


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    memory: int  # MiB, of all its processes
    idle: float  # seconds without a session; 0: it is never stopped for that


class ServerKeeper:
    """``sessions`` counts connections with data; ``unused`` is set while there is none."""

    def __init__(self, limits: ServerLimits, *, token: str, log: Path, ui_port: int = 0) -> None:
        self._limits, self._token, self._log, self._ui_port = limits, token, log, ui_port
        self._server: ServerProcess | None = None
        self._starting = asyncio.Lock()
        self._clock = asyncio.get_running_loop().time
        self._answered_at = self._used_at = self._clock()
        self._not_before = 0.0
        self.sessions, self.unused = 0, asyncio.Event()
        self.unused.set()

    @contextmanager
    def session(self) -> Iterator[None]:
        """Inside, the server is not stopped for lack of use."""
        self.sessions += 1
        self.unused.clear()
        try:
            yield
        finally:
            self.sessions -= 1
            if not self.sessions:
                self.unused.set()

    async def port(self) -> int:
        """Returns the port of the server, which it starts if needed. Raises :class:`SparkUnavailable`."""
        async with self._starting:
            self._used_at = self._clock()
            if self._server is not None and self._server.exit_code is None:
                return self._server.port
            if self._clock() < self._not_before:
                raise SparkUnavailable("The Spark Connect server did not start just now; its log says why.")
            await self._forget()
            self._server = await self._start()
            return self._server.port

    @property
    def telling_port(self) -> int | None:
        """Where the server that runs tells what its sessions took."""
        return self._server.telling_port if self._server is not None else None

    async def warm(self) -> None:
        """Starts the server in advance, and has it run its first queries."""
        began = self._clock()
        try:
            await self.port()
        except SparkUnavailable:
            return  # this is logged; the next session tries again
        server = self._server
        reason = await server.warm_up() if server is not None else None
        self._used_at = self._clock()
        observe(seen.warm(round(self._clock() - began, 1)) if reason is None else seen.not_warm(reason))

    async def look(self) -> None:
        """Checks the server, once in :data:`LOOK`."""
        server, now = self._server, self._clock()
        if server is None or self._starting.locked():
            return
        if self.sessions:
            self._used_at = now
        if server.exit_code is not None:
            code, sessions = server.exit_code, self.sessions
            await self._end(server)  # then all that it has said is there
            if "OutOfMemoryError" in server.last_words:
                observe(seen.out_of_memory(code, self._limits.memory, sessions))
            else:
                observe(seen.ended(code, sessions))
            return
        if server.resident() > self._limits.memory and (memory := await asyncio.to_thread(server.memory)) > self._limits.memory:
            observe(seen.too_large(memory, self._limits.memory, self.sessions))
            with self._log.open("a") as log:  # for the tries that lose their sessions
                log.write(f"{TOO_LARGE} {memory} MiB of memory, and may have {self._limits.memory}\n")
        elif not await self._is_alive(server):
            observe(seen.frozen(round(self._clock() - self._answered_at, 1), self.sessions))
        elif self._limits.idle and now - self._used_at > self._limits.idle:
            observe(seen.idle(round(now - self._used_at)))
            await self._end(server, at_once=False)
            return
        else:
            return
        await self._end(server)

    async def close(self) -> None:
        async with self._starting:
            await self._forget()

    async def _end(self, server: ServerProcess, *, at_once: bool = True) -> None:
        """Ends the server, unless another task has found it dead meanwhile and replaced it."""
        async with self._starting:
            if self._server is server:
                await self._forget(at_once=at_once)

    async def _is_alive(self, server: ServerProcess) -> bool:
        if await server.answers():
            self._answered_at = self._clock()
        return self._clock() - self._answered_at < FROZEN

    async def _start(self) -> ServerProcess:
        began = self._clock()
        try:
            heap = int(self._limits.memory * HEAP)
            server = ServerProcess.start(token=self._token, heap_mib=heap, log=self._log, ui_port=self._ui_port)
        except (EvenflowError, OSError) as error:
            raise self._failed(str(error)) from error
        observe(seen.begun(server.pid, str(self._log)))
        try:
            if await server.begins(STARTS):
                self._answered_at = self._used_at = self._clock()
                observe(seen.answers(server.pid, round(self._clock() - began, 1)))
                return server
        except BaseException:
            await server.end(at_once=True)
            raise
        exit_code = server.exit_code
        await server.end(at_once=True)
        how = f"it did not answer within {STARTS:g} s" if exit_code is None else f"it ended with exit code {exit_code}"
        raise self._failed(f"{how}; its last words: {server.last_words}")

    def _failed(self, reason: str) -> SparkUnavailable:
        self._not_before = self._clock() + PAUSE
        observe(seen.not_started(reason))
        return SparkUnavailable(f"The Spark Connect server did not start: {reason}")

    async def _forget(self, *, at_once: bool = True) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.end(at_once=at_once)


async def keep(keeper: ServerKeeper) -> None:
    """Runs until it is cancelled."""
    await keeper.warm()
    while True:
        await asyncio.sleep(LOOK)
        try:
            await keeper.look()
        except Exception as error:
            observe(seen.not_kept(error))
