"""A PostgreSQL that is further away: distance.py SOCKET TARGET MS passes bytes on between the two Unix sockets, MS/2 late in each
direction and in their order. What it costs of the processor comes on top, some 0.1 ms a round trip.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import uvloop
from psycopg import conninfo

CHUNK = 1 << 18


@contextmanager
def distant(url: str, ms: float) -> Iterator[str]:
    """The URL under which the server of ``url`` is a round trip of ``ms`` away. For a server that listens on a Unix socket."""
    if not ms:
        yield url
        return
    given = conninfo.conninfo_to_dict(url)
    host, port = str(given.get("host") or ""), given.get("port") or 5432
    if not host.startswith("/"):
        raise SystemExit("--rtt-ms is for a server that listens on a Unix socket: give the other one its distance by other means.")
    with tempfile.TemporaryDirectory(prefix="evenflow-bench-") as directory:
        name = f".s.PGSQL.{port}"
        arguments = [sys.executable, __file__, f"{directory}/{name}", f"{host}/{name}", str(ms)]
        proxy = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        assert proxy.stdout is not None
        assert proxy.stdout.readline() == "ready\n"
        try:
            yield conninfo.make_conninfo(url, host=directory)
        finally:
            proxy.terminate()
            proxy.wait(10)


class _Line:
    """One direction of a connection: what arrives is passed on when its time has come."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, late_s: float) -> None:
        self._reader, self._writer, self._late_s = reader, writer, late_s
        self._under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._hear())
            tasks.create_task(self._pass_on())

    async def _hear(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while heard := await self._reader.read(CHUNK):
                self._under_way.put_nowait((loop.time() + self._late_s, heard))
        except ConnectionError:
            pass
        self._under_way.put_nowait((0.0, b""))

    async def _pass_on(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            at, heard = await self._under_way.get()
            if not heard:
                break
            if (wait_s := at - loop.time()) > 0:
                await asyncio.sleep(wait_s)
            self._writer.write(heard)
        self._writer.close()


async def main() -> None:
    _, here, there, ms = sys.argv
    late_s = float(ms) / 2000

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_unix_connection(there)
        await asyncio.gather(_Line(reader, far_writer, late_s).run(), _Line(far_reader, writer, late_s).run())

    server = await asyncio.start_unix_server(connect, here)
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
