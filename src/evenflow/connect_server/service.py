"""Listens in place of a Spark Connect server, which it starts when a session is wanted, and passes data on.

So the address stays the same while the service runs, although the server itself may be stopped, killed or started anew. A mere
check whether something listens starts nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from evenflow.connect_server.keeper import ServerKeeper, ServerLimits, keep
from evenflow.connect_server.limits import CHUNK, DIES, LOOK
from evenflow.errors import SettingsError, SparkUnavailable
from evenflow.spark.local_server import check_installed
from evenflow.telemetry.health import HealthMonitor
from evenflow.telemetry.service import Loops, Service

TELLING = b"POST /evenflow/"  # how a question about a session begins; Connect itself speaks HTTP/2
HOST = "127.0.0.1"  # only this host, because the traffic is not encrypted


class ConnectServerService(Service):
    """``log`` takes the server's own output; each session must show ``token``. With ``ui_port`` it has a Spark UI."""

    kind = "connect-server"

    def __init__(
        self,
        *,
        name: str,
        port: int,
        token: str,
        limits: ServerLimits,
        log: Path,
        ui_port: int = 0,
        health: HealthMonitor | None = None,
    ) -> None:
        super().__init__(name, health)
        self.port, self._ui_port, self._token, self._limits, self._log = port, ui_port, token, limits, log

    async def _begin(self) -> Loops:
        await asyncio.to_thread(check_installed)
        self._keeper = ServerKeeper(self._limits, token=self._token, log=self._log, ui_port=self._ui_port)
        self._opened.push_async_callback(self._keeper.close)
        try:
            listener = await asyncio.start_server(self._serve, HOST, self.port)
        except OSError as error:
            raise SettingsError(
                f"The Spark Connect server cannot listen on {HOST}:{self.port}: {error.strerror}. Stop the program that has the "
                f"port, or choose another: EVENFLOW_SPARK_CONNECT_PORT={self.port + 1}"
            ) from None
        self.port = listener.sockets[0].getsockname()[1]
        self._opened.callback(listener.close)
        return {"server": keep(self._keeper)}

    async def _finish(self) -> None:
        """Waits for sessions, which belong to tries, whose workers drain by themselves."""
        await self._keeper.unused.wait()

    async def _leave(self) -> None: ...

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError, SparkUnavailable):
            first = await reader.read(CHUNK)
            if not first:
                return
            if first.startswith(TELLING):
                await self._ask(first, reader, writer)
                return
            with self._keeper.session():
                theirs, ours = await self._connected()
                with contextlib.closing(ours):
                    ours.write(first)
                    await _pass_on(reader, ours, theirs, writer)

    async def _ask(self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """What a session took: asked of the server that runs, and of none that would have to be started."""
        port = self._keeper.telling_port
        if port is not None:
            theirs, ours = await asyncio.open_connection(HOST, port)
            with contextlib.closing(ours):
                ours.write(first)
                await _pass_on(reader, ours, theirs, writer)

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connects to the server. A server that was just killed refuses for a moment before it ends."""
        deadline = asyncio.get_running_loop().time() + DIES
        while True:
            port = await self._keeper.port()
            try:
                return await asyncio.open_connection(HOST, port)
            except OSError:
                if asyncio.get_running_loop().time() > deadline:
                    raise
            await asyncio.sleep(LOOK / 4)


async def _pass_on(
    reader: asyncio.StreamReader, ours: asyncio.StreamWriter, theirs: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Passes data on until one side is done: then the other has nothing to send either."""
    passing = [asyncio.create_task(_copy(reader, ours)), asyncio.create_task(_copy(theirs, writer))]
    try:
        await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in passing:
            task.cancel()
        await asyncio.gather(*passing, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
