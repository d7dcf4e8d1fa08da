"""Hands a try from another process of this host to a worker: over a Unix socket, a line with the epoch, and later a line with the
outcome. The try has the logs and limits of the worker; the sender only waits. A client that sends ``intake`` instead learns from
then on whether the worker takes tries. One that sends ``leave`` is about to end: the worker asks for nothing more by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterator

from evenflow.errors import ApiRefused
from evenflow.telemetry.observing import observe
from evenflow.worker import limits
from evenflow.worker import observations as seen
from evenflow.worker.handed import Handed, Intake

_LINE = 32  # bytes: an epoch has 19 digits at most
_LAST_EPOCH = 2**63 - 1  # the largest that the database can have
_INTAKE, _OPEN, _CLOSED, _LEAVE = b"intake\n", b"open\n", b"closed\n", b"leave\n"


def hand(path: str, epoch: int) -> Handed:
    """Returns when the try has ended, or cannot be had. Raises :class:`OSError` when no worker listens there, or it has died."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(None)  # a try may take long, and Celery gives new sockets 5 s while it ends
        connection.connect(path)
        connection.sendall(b"%d\n" % epoch)
        with connection.makefile("rb") as answers:
            answer = answers.readline(_LINE)
    if not answer.endswith(b"\n"):
        raise ConnectionResetError(f"The worker of {path} has died.")
    return Handed(answer.decode().strip())


def follow_intake(path: str) -> Iterator[bool]:
    """Yields whether that worker takes tries, now and at each change, until it ends. Raises :class:`OSError`."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(_INTAKE)
        with connection.makefile("rb") as told:
            for line in told:
                yield line == _OPEN


def ask_to_leave(path: str) -> None:
    """Has that worker ask for no resumes from now on. It still takes what it is handed. Raises :class:`OSError`."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(_LEAVE)


class Handing:
    """Listens at ``path``, which only this user can reach, and has ``run_try`` run the tries that it gets. ``leave`` is called when
    the sender is about to end. A writer to a broker may send anything: numbers that cannot be tries are not claimed, or the whole
    claim with them would be refused.
    """

    def __init__(self, path: str, run_try: Callable[[int], Awaitable[Handed]], intake: Intake, leave: Callable[[], None]) -> None:
        self._path, self._run_try, self._intake, self._leave = path, run_try, intake, leave

    async def run(self) -> None:
        """Runs until it is cancelled."""
        listening = socket.socket(socket.AF_UNIX)
        try:
            listening.bind(self._path)  # its folder is closed to others
            server = await asyncio.start_unix_server(self._serve, sock=listening, limit=_LINE, backlog=limits.HANDED_AT_ONCE)
        except BaseException:
            listening.close()
            raise
        async with server:
            await server.serve_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError, asyncio.CancelledError):  # at the end asyncio would log these
            line = await _read_line(reader)
            if line == _INTAKE:
                async for is_open in self._intake.follow():
                    writer.write(_OPEN if is_open else _CLOSED)
                    await writer.drain()
            if line == _LEAVE:
                self._leave()
                return
            epoch = int(line) if line.strip().isdigit() else 0
            became = await self._became(epoch) if 0 < epoch <= _LAST_EPOCH else Handed.GONE
            writer.write(f"{became}\n".encode())
            await writer.drain()

    async def _became(self, epoch: int) -> Handed:
        try:
            became = await self._run_try(epoch)
        except ApiRefused as error:
            observe(seen.handed_refused(epoch, str(error)))
            became = Handed.LATER
        if became is Handed.LATER:  # the broker sends it again at once; other workers should get it first
            await asyncio.sleep(limits.HANDED_PAUSE)
        return became


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    """Returns a line, or an empty one if it is longer than any valid line."""
    try:
        return await reader.readline()
    except ValueError:
        return b""
