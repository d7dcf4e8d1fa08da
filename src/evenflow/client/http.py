"""HTTP to the API: one pool of kept-alive connections, a time limit on everything, and repeats while an API restarts."""

from __future__ import annotations

import asyncio
import os
import random
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType

import aiohttp

from evenflow.errors import ApiNotTrusted, ApiUnavailable
from evenflow.wire.tls import TRUST_CURE, Tls

CONNECT_TIMEOUT_S = 5.0  # the API is near, or it is down
REQUEST_TIMEOUT_S = 30.0  # for a request that does not wait; the slowest takes well under a second
PATIENCE_S = 10.0  # how long a request is repeated: an API process restarts in less
FIRST_BACKOFF_S = 0.05
MAX_BACKOFF_S = 2.0
LINE = 2**20  # bytes of a line of a stream
CONNECTIONS = 32  # of one process; a worker needs a long poll and a few beside it

PLAIN = Tls()
NO_HEADERS: Mapping[str, str] = MappingProxyType({})
LONGEST_PACE_S = 10.0  # that is waited for where the API says that this token asks too often
PACED_S = 120.0  # for which one request is put off so: many scripts of one token wait for each other
RETRIED = frozenset({408, 429, 502, 503, 504})  # the request was not served; any other status is an answer
NO_ROOM = 507  # an answer; the next request goes to another server, which may have room


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def asks_for_s(self) -> float:
        """The pause before the next request. A date is ignored, because it is by another clock."""
        said = self.headers.get("Retry-After", "")
        return float(said) if said.isdecimal() else 0.0

    @property
    def is_paced(self) -> bool:
        """Whether it comes too early, and is welcome in a moment."""
        return self.status == 429 and 0 < self.asks_for_s <= LONGEST_PACE_S


def is_served(response: Response) -> bool:
    return response.status not in RETRIED


class HttpClient:
    """Requests with one token to an API of one base URL or several, separated by commas: a silent server is left for the next.
    Raises :class:`ApiUnavailable` without any answer for ``patience_s``, after each was asked; :class:`SettingsError` for an unsafe
    URL. It follows no redirection, because requests contain tokens for the API only. ``is_answer`` decides what an answer is; a
    request with another response is sent again.
    """

    def __init__(
        self,
        api_url: str,
        token: str,
        *,
        patience_s: float = PATIENCE_S,
        tls: Tls = PLAIN,
        is_answer: Callable[[Response], bool] = is_served,
    ) -> None:
        self._urls = [url.strip().rstrip("/") for url in api_url.split(",")]
        for url in self._urls:
            tls.check_url(url)
        self._tls, self._is_answer = tls, is_answer
        random.shuffle(self._urls)  # so that the clients spread over the servers
        self._token, self._patience_s = token, patience_s
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str | None = None,
        params: Mapping[str, str] | None = None,
        token: str | None = None,
        waits_s: float = 0.0,
        patience_s: float | None = None,
        idempotent: bool = True,
        idempotency_key: str | None = None,
    ) -> Response:
        """Sends a request, and repeats it with growing pauses while there is no answer.

        ``waits_s`` is how long the server may wait on purpose. A request that is not ``idempotent`` is repeated only when it surely
        never arrived, or comes too early for the pace of its token: then the pause is as long as the server says.
        """
        headers = {"Authorization": f"Bearer {token or self._token}"}
        if content_type is not None:
            headers["Content-Type"] = content_type
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        loop = asyncio.get_running_loop()
        paced_until = loop.time() + PACED_S
        deadline = loop.time() + (self._patience_s if patience_s is None else patience_s)
        timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S + waits_s, sock_connect=CONNECT_TIMEOUT_S)
        backoff, unasked = FIRST_BACKOFF_S, set(self._urls)
        while True:
            url = next((each for each in self._urls if each in unasked), self.api_url)
            unasked.discard(url)
            stays, pause = False, backoff * random.uniform(0.5, 1.0)
            try:
                async with self._opened().request(
                    method, f"{url}{path}", data=body, headers=headers, params=params, timeout=timeout, allow_redirects=False
                ) as answer:
                    response = Response(answer.status, answer.headers, await answer.read())
                if len(self._urls) == 1:
                    pause = max(pause, response.asks_for_s)
                is_put_off = response.is_paced and loop.time() < paced_until  # whatever it asks for, it was not served
                answered = not is_put_off and self._is_answer(response)
                stays = answered and response.status != NO_ROOM
                is_last = not idempotent or (not unasked and loop.time() + max(pause, backoff) >= deadline)
                if answered or (is_last and not is_put_off):
                    return response
            except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
                if not unasked and loop.time() + backoff >= deadline:
                    raise self._unavailable(error) from error
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                if not idempotent or (not unasked and loop.time() + backoff >= deadline):
                    raise self._unavailable(error) from error
            finally:
                if not stays and url == self.api_url:  # also when the caller has given up
                    self._urls.append(self._urls.pop(0))
            await asyncio.sleep(pause)
            backoff = min(2 * backoff, MAX_BACKOFF_S)

    @asynccontextmanager
    async def stream(
        self, path: str, *, params: Mapping[str, str], headers: Mapping[str, str] = NO_HEADERS
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Asks once for an answer that is read as it arrives; silence has a time limit, its length has none. The next request goes
        to another server when this one is lost.
        """
        url, headers = self.api_url, {**headers, "Authorization": f"Bearer {self._token}"}
        timeout = aiohttp.ClientTimeout(sock_connect=CONNECT_TIMEOUT_S, sock_read=REQUEST_TIMEOUT_S)
        try:
            async with self._opened().get(
                f"{url}{path}", headers=headers, params=params, timeout=timeout, allow_redirects=False, read_bufsize=LINE
            ) as answer:
                yield answer
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if url == self.api_url:
                self._urls.append(self._urls.pop(0))
            raise self._unavailable(error) from error

    @property
    def api_url(self) -> str:
        """The URL of the next request."""
        return self._urls[0]

    @property
    def _is_secure(self) -> bool:
        return any(url.startswith("https:") for url in self._urls)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            context = self._tls.for_client() if self._is_secure else True
            connector = aiohttp.TCPConnector(limit=CONNECTIONS, keepalive_timeout=60.0, ssl=context)
            self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar())
        return self._session

    def _unavailable(self, error: Exception) -> ApiUnavailable:
        servers, reason = ", ".join(sorted(self._urls)), _said(error)
        kind = ApiNotTrusted if _about_tls(error) else ApiUnavailable
        return kind(f"The Evenflow API at {servers} cannot be reached: {reason.rstrip('.')}. {self._cure(error)}")

    def _cure(self, error: Exception) -> str:
        secure, dropped = self._is_secure, isinstance(error, aiohttp.ServerDisconnectedError)
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return TRUST_CURE
        if isinstance(error, aiohttp.ClientConnectorSSLError) and "WRONG_VERSION_NUMBER" in str(error):
            return "It speaks plain HTTP: write http:// in EVENFLOW_API_URL, or give that API a certificate (EVENFLOW_TLS_CERT)."
        if _about_tls(error) or (dropped and secure):
            return "It may ask for certificates of its clients: EVENFLOW_TLS_CERT and EVENFLOW_TLS_KEY name this one's."
        if dropped:
            return "It may speak TLS alone: try https:// in EVENFLOW_API_URL."
        return "Start it (evenflow up) or correct EVENFLOW_API_URL."


def _about_tls(error: Exception) -> bool:
    found = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    return isinstance(error, aiohttp.ClientSSLError) or isinstance(found, ssl.SSLError) or isinstance(error.__cause__, ssl.SSLError)


def _said(error: Exception) -> str:
    """Returns the error's text. For a failed connection it is the system's text alone: the target is known, and aiohttp's mention
    of TLS misleads.
    """
    if type(error) is aiohttp.ClientConnectorError and (error.os_error.errno or 0) > 0:
        return os.strerror(error.os_error.errno or 0)
    return str(error) or type(error).__name__
