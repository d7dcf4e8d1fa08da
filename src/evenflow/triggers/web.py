"""HTTP for looks: one client for all triggers of a process, limits on everything, and errors that show no secret.

A look is one request. No answer, a late one, a 5xx or a 429 raises :class:`LookUnanswered`; an untrusted certificate or an invalid
URL raises :class:`LookRefused`.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from evenflow.core.hosts import in_url
from evenflow.errors import LookRefused, LookUnanswered
from evenflow.http_dates import told_time
from evenflow.sdk.secrets.connections import Connection
from evenflow.triggers import limits

if TYPE_CHECKING:
    import ssl


BUSY = frozenset({408, 425, 429})  # statuses below 500 that mean: not now


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRequest:
    url: str
    who: str  # the name of the other side in messages
    method: str = "GET"
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    login: tuple[str, str] | None = field(default=None, repr=False)
    body: Any = field(default=None, repr=False)  # JSON
    tls: ssl.SSLContext | bool = True  # False trusts any certificate
    follow: bool = True  # redirects
    expected: Collection[int] = ()  # statuses that are answers, although they usually mean that the service is away


@dataclass(frozen=True, slots=True)
class Answer:
    """Named as in Python's usual HTTP clients."""

    status_code: int
    content: bytes = field(repr=False)
    who: str = ""
    at: datetime = field(default_factory=lambda: datetime.now(UTC))  # by the clock of the other side, if it tells it

    @property
    def ok(self) -> bool:
        return self.status_code < 400

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")

    def json(self) -> Any:
        """Raises :class:`LookRefused` when the body is not JSON."""
        try:
            return json.loads(self.content)
        except ValueError:
            raise LookRefused(
                f"{self.who} answered with status {self.status_code} and no JSON: {self.text[: limits.MOST_SHOWN]!r}. Check that "
                "the path is that of an API."
            ) from None


async def fetch(request: WebRequest) -> Answer:
    """Returns the answer, except for statuses that mean no answer. Raises :class:`LookUnanswered` and :class:`LookRefused`."""
    await _import_client()
    import aiohttp

    try:
        async with (
            _client() as client,
            client.to_one[urlsplit(request.url).netloc],
            client.requests_at_once,
            client.session.request(
                request.method,
                request.url,
                params=request.params,
                headers={**(_authorization(*request.login) if request.login else {}), **request.headers},
                json=request.body,
                ssl=request.tls,
                allow_redirects=request.follow,
            ) as response,
        ):
            if response.status not in request.expected and (response.status >= 500 or response.status in BUSY):
                raise LookUnanswered(f"{request.who} answered with status {response.status}.")
            body = await response.content.read(limits.MOST_BYTES + 1)
            while len(body) <= limits.MOST_BYTES and (more := await response.content.read(limits.MOST_BYTES + 1 - len(body))):
                body += more
            if len(body) > limits.MOST_BYTES:
                raise LookRefused(
                    f"{request.who} answered with more than {limits.MOST_BYTES:,} bytes. Ask it for less: a status, not data."
                )
            return Answer(response.status, body, request.who, told_time(response.headers.get("Date")) or datetime.now(UTC))
    except aiohttp.InvalidURL:
        raise LookRefused(f"{request.who} has no valid URL. It begins with http:// or https:// and names a host.") from None
    except aiohttp.ClientConnectorCertificateError as error:
        raise LookRefused(f"{request.who} shows a certificate that is not trusted: {error.certificate_error}.") from None
    except TimeoutError:
        raise LookUnanswered(f"{request.who} did not answer within {limits.ANSWERS_WITHIN:g} s.") from None
    except (aiohttp.ClientError, OSError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise LookUnanswered(f"{request.who} does not answer ({why}).") from None


def _authorization(login: str, password: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(f'{login}:{password}'.encode()).decode()}"}


def base_url(conn: Connection) -> str:
    """Returns the URL of a connection such as ``https://host:port/base``, also in Airflow's forms, with the scheme in the host or
    as the path.
    """
    if conn.host and "://" in conn.host:
        return conn.host.rstrip("/") + (f":{conn.port}" if conn.port else "")
    if not conn.host:
        raise LookRefused(f"Connection {conn.conn_id!r} names no host. Type: evenflow connections set {conn.conn_id}")
    scheme, path = (conn.path, "") if conn.path in ("http", "https") else (conn.scheme, conn.path)
    if scheme not in ("http", "https"):
        raise LookRefused(f"Connection {conn.conn_id!r} has the scheme {scheme!r}. Write https://HOST:PORT or http://HOST:PORT.")
    return f"{scheme}://{in_url(conn.host)}" + (f":{conn.port}" if conn.port else "") + (f"/{path.strip('/')}" if path else "")


def join(base: str, endpoint: str) -> str:
    return f"{base}/{endpoint.lstrip('/')}" if endpoint else base


def host_of(url: str) -> str:
    """Returns the host for messages, without login, path and query."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


_imported = False


async def _import_client() -> None:
    """Imports aiohttp beside the event loop: that may take seconds, and other triggers run meanwhile."""
    global _imported
    if not _imported:
        await asyncio.to_thread(_client_module)
        _imported = True


def _client_module() -> ModuleType:
    import aiohttp

    return aiohttp


class _Client:
    """Shared by looks of one event loop that overlap or follow each other closely, so that sockets are reused."""

    def __init__(self) -> None:
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=limits.ANSWERS_WITHIN, connect=None, sock_connect=limits.CONNECTS_WITHIN)
        self.session = aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar(), trust_env=True)
        self.requests_at_once = asyncio.Semaphore(limits.REQUESTS_AT_ONCE)
        self.to_one = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(limits.REQUESTS_TO_ONE))
        self.users = 0


_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, _Client] = WeakKeyDictionary()


@asynccontextmanager
async def kept_open() -> AsyncIterator[None]:
    """While it is open, looks of this loop share one client; the last user closes it."""
    await _import_client()
    async with _client():
        yield


@asynccontextmanager
async def _client() -> AsyncIterator[_Client]:
    loop = asyncio.get_running_loop()
    client = _clients.get(loop)
    if client is None:
        client = _clients[loop] = _Client()
    client.users += 1
    try:
        yield client
    finally:
        client.users -= 1
        if not client.users:
            del _clients[loop]
            await client.session.close()
