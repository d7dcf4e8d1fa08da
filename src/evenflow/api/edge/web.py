"""uvicorn as a part of a process: no signal handlers, no lifespan, and a port that is known before the first request."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import ssl
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from evenflow.api import limits
from evenflow.api import observations as seen
from evenflow.errors import SettingsError
from evenflow.telemetry.observing import observe
from evenflow.wire.tls import Tls


class BoundedHttp(HttpToolsProtocol):
    """Hangs up on callers that send no whole head, or take nothing of their answer: what writes that is held by it."""

    _in_head = True
    _head_bytes = 0
    _late: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_watching()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        self._stop_watching()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > limits.HEAD and not self.transport.is_closing():
            self.send_400_response(f"The head of a request has at most {limits.HEAD:,} bytes.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait_for_head()

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head, self._head_bytes = True, 0
        super().on_message_complete()

    def _wait_for_head(self) -> None:
        self._stop_waiting()
        self._late = self.loop.call_later(limits.HEAD_TIME, self._hang_up)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _watch_reader(self) -> None:
        """Nothing is added to what waits to be sent while writing is paused."""
        self._stop_watching()
        left = self.transport.get_write_buffer_size()
        self._stalled = self.loop.call_later(limits.STALLED, self._look_at_reader, left)

    def _look_at_reader(self, left_before: int) -> None:
        if left_before - self.transport.get_write_buffer_size() < limits.STALLED_BYTES:
            self.transport.abort()
        else:
            self._watch_reader()

    def _stop_watching(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _hang_up(self) -> None:
        if not self.transport.is_closing():
            self.send_400_response(f"The head of a request is complete within {limits.HEAD_TIME:g} s.")


def _connections() -> int:
    """Returns how many connections are served at once: as many as leave descriptors for logs and the database."""
    return max(limits.LEAST_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - limits.OTHER_DESCRIPTORS)


class _ApiServer(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self._ending = asyncio.Event()

    def end(self) -> None:
        self.should_exit = True
        self._ending.set()

    async def main_loop(self) -> None:
        """Waits for the end only. Evenflow does not need uvicorn's ten ticks a second, which keep the date header and a request
        limit.
        """
        await self.on_tick(0)
        await self._ending.wait()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # signals are for the host of the service


class WebServer:
    """Serves ``app``, at a copy of ``listener`` if that is the descriptor of a socket that listens. Raises :class:`SettingsError`
    when it may not be served at this address, and from ``start`` when the address is not available.

    ``proxies`` are addresses and networks whose word counts of whence a request came, and whether by TLS; that of others does not.
    """

    def __init__(self, app: ASGIApp, *, host: str, port: int, tls: Tls, listener: int = -1, proxies: str = "") -> None:
        self._host, self._wanted_port, self._listener = host, port, listener
        if tls.check_bind("The API", host):
            observe(seen.api_plain(host))
        tls.for_server()  # raises when something is wrong with the files
        self._server = _ApiServer(
            uvicorn.Config(
                app,
                http=BoundedHttp,
                limit_concurrency=_connections(),
                ws="none",
                lifespan="off",
                interface="asgi3",
                access_log=False,
                log_config=None,
                server_header=False,
                headers=[("X-Content-Type-Options", "nosniff")],  # answers contain authors' texts: browsers must not guess types
                date_header=False,
                proxy_headers=bool(proxies),
                forwarded_allow_ips=proxies,
                backlog=limits.BACKLOG,
                timeout_keep_alive=limits.KEEP_ALIVE,
                ssl_certfile=tls.cert or None,
                ssl_keyfile=tls.key or None,
                ssl_ca_certs=tls.client_ca or None,
                ssl_cert_reqs=ssl.CERT_REQUIRED if tls.client_ca else ssl.CERT_NONE,
                timeout_graceful_shutdown=limits.SHUTDOWN,
            )
        )
        self._socket: socket.socket | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        assert self._socket is not None
        return int(self._socket.getsockname()[1])

    async def start(self) -> None:
        """Returns when requests are served."""
        listening = self._socket = socket.socket(fileno=os.dup(self._listener)) if self._listener >= 0 else self._bound()
        self._task = asyncio.create_task(self._server.serve(sockets=[listening]), name="web server")
        ready = asyncio.create_task(self._server.ready.wait())
        await asyncio.wait([ready, self._task], return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._task.done():
            await self._task

    def _bound(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((self._host, self._wanted_port))
        except OSError as error:
            listening.close()
            raise SettingsError(
                f"The API cannot listen on {self._host}:{self._wanted_port}: {error.strerror}. "
                "Stop what uses it or set EVENFLOW_API_PORT."
            ) from None
        return listening

    async def stop(self) -> None:
        """Serves the requests in hand for up to ``limits.SHUTDOWN`` seconds, and no new ones."""
        self._server.end()
        if self._task is not None:
            await asyncio.wait([self._task])
        if self._socket is not None:
            self._socket.close()

    async def run(self) -> None:
        """Raises when the server has ended by itself."""
        assert self._task is not None
        await asyncio.wait([self._task])
        raise self._task.exception() or RuntimeError("The web server ended by itself.")
