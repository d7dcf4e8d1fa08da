"""Health and metrics over HTTP, in separate threads: a check whether the event loop hangs must not wait for that loop."""

from __future__ import annotations

import hmac
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any

from evenflow.core.hosts import in_url
from evenflow.errors import SettingsError
from evenflow.telemetry.observing import observe, question_not_answered

AT_ONCE = 16  # connections; a probe and a scrape are two, the rest is for hanging ones
TIMEOUT_S = 5.0  # for a request to arrive, and for its answer to be read
POLL_S = 0.1  # how often it checks whether it should stop


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    content_type: str
    body: bytes


NOTHING: Mapping[str, str] = MappingProxyType({})


class Listener:
    """Answers GET for ``pages``, by path; ``shown`` has the tokens that some pages need. Raises :class:`SettingsError` when it
    cannot listen there.
    """

    def __init__(
        self,
        host: str,
        port: int,
        pages: Mapping[str, Callable[[], HttpAnswer]],
        tls: ssl.SSLContext | None = None,
        *,
        shown: Mapping[str, str] = NOTHING,
    ) -> None:
        try:
            self._server = _PageServer(host, port, pages, tls, shown)
        except OSError as error:
            raise SettingsError(
                f"Health and metrics cannot listen on {host}:{port}: {error.strerror}. Stop what uses the port, or set "
                "EVENFLOW_METRICS_HOST and EVENFLOW_METRICS_PORT (0 takes a free one, -1 none)."
            ) from None
        self._thread = threading.Thread(target=self._server.serve_forever, args=(POLL_S,), name="health and metrics", daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.socket.getsockname()[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def advertised(host: str, port: int) -> str:
    """Returns the address under which others reach a listener on ``host``: this machine's name, if it listens on all interfaces."""
    name = socket.gethostname() if host in ("0.0.0.0", "::") else host
    return f"{in_url(name)}:{port}"


class _PageServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = AT_ONCE

    def __init__(
        self,
        host: str,
        port: int,
        pages: Mapping[str, Callable[[], HttpAnswer]],
        tls: ssl.SSLContext | None,
        shown: Mapping[str, str],
    ) -> None:
        self._tls, self.shown = tls, shown
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.pages = pages
        self._room = threading.BoundedSemaphore(AT_ONCE)
        super().__init__((host, port), _PageHandler)

    def server_bind(self) -> None:
        """Binds like the class above, without a DNS query for an unused name."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = "", 0

    def get_request(self) -> tuple[Any, Any]:
        """Wraps a connection. The request's own thread shakes hands, within its time."""
        connection, address = super().get_request()
        if self._tls is not None:
            connection = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores callers that hang up."""
        error = sys.exception()
        if error is not None and not isinstance(error, OSError):
            observe(question_not_answered(error))


class _PageHandler(BaseHTTPRequestHandler):
    timeout = TIMEOUT_S
    server: _PageServer

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        page = (self.server.pages.get(path, _nothing) if self._may_see(path) else _refused)()
        self.send_response_only(page.status)
        self.send_header("Content-Type", page.content_type)
        self.send_header("Content-Length", str(len(page.body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(page.body)

    def _may_see(self, path: str) -> bool:
        wanted = self.server.shown.get(path)
        shown = self.headers.get("Authorization", "").partition(" ")[2].strip()
        return wanted is None or hmac.compare_digest(shown.encode(), wanted.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged."""


def _refused() -> HttpAnswer:
    return HttpAnswer(401, "text/plain", b"Show EVENFLOW_METRICS_TOKEN of this service (header Authorization: Bearer ...).\n")


def _nothing() -> HttpAnswer:
    return HttpAnswer(404, "text/plain", b"There are /health/live, /health/ready and /metrics.\n")
