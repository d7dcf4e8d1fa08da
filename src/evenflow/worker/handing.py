"""How another process of this host hands a try to a worker: over a Unix socket, one line with the epoch, and one with what became
of it when that is known. The try has the logs and limits of the worker; who hands it over only waits. Whoever says ``intake``
instead hears from then on whether anything is to be handed over.
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
_LAST_EPOCH = 2**63 - 1  # that the database could have
_INTAKE, _OPEN, _CLOSED = b"intake\n", b"open\n", b"closed\n"


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
    """Whether tries are to be handed to that worker, now and whenever it changes, until it ends. Raises :class:`OSError`."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(_INTAKE)
        with connection.makefile("rb") as told:
            for line in told:
                yield line == _OPEN


class Handing:
    """Listens at ``path``, which only this user may reach, and has ``run_try`` run what it is handed. Whoever may write to a broker
    may have anything handed over: what can be no try is not asked for, or the claim of all that came with it would be refused.
    """

    def __init__(self, path: str, run_try: Callable[[int], Awaitable[Handed]], intake: Intake) -> None:
        self._path, self._run_try, self._intake = path, run_try, intake

    async def run(self) -> None:
        """For ever."""
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
        with contextlib.closing(writer), contextlib.suppress(OSError, asyncio.CancelledError):  # at its end: asyncio would log it
            line = await _read_line(reader)
            if line == _INTAKE:
                async for is_open in self._intake.follow():
                    writer.write(_OPEN if is_open else _CLOSED)
                    await writer.drain()
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
        if became is Handed.LATER:  # it is sent again at once; to this worker it is to come less often than to others
            await asyncio.sleep(limits.HANDED_PAUSE)
        return became


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    """Nothing when it is longer than any line that means something."""
    try:
        return await reader.readline()
    except ValueError:
        return b""
