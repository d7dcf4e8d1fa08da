"""Requests to the API of a cluster. Objects are plain JSON, because most fields of full models would not be read.

Each request waits for its turn (a rate, and a number in flight), and is sent again while the API is busy, restarts or breaks off.
So each write has a name or a uid, and after a create a conflict counts as an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import msgspec

from evenflow.errors import ClusterRefused, ClusterUnavailable
from evenflow.http_dates import told_time
from evenflow.kubernetes import limits
from evenflow.kubernetes.address import ClusterAddress
from evenflow.kubernetes.pacing import RequestPace

Object = dict[str, Any]
MERGE_PATCH = "application/merge-patch+json"
_PASSING = frozenset({408, 429, 500, 502, 503, 504})  # the next attempt may be answered
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class KubernetesClient:
    """Raises :class:`ClusterRefused` with the API's message, and :class:`ClusterUnavailable` without an answer for a long time: an
    attempt waits ``answer_s`` for its answer, and there are attempts for ``patience_s``.
    """

    def __init__(
        self,
        address: ClusterAddress,
        *,
        pace: RequestPace | None = None,
        patience_s: float = limits.PATIENCE_S,
        answer_s: float = limits.ANSWER_S,
    ) -> None:
        self.address, self._pace, self._patience_s, self._answer_s = address, pace or RequestPace(), patience_s, answer_s
        self._session: aiohttp.ClientSession | None = None
        self._ahead = timedelta()  # of the cluster's clock before ours

    @property
    def now(self) -> datetime:
        """Returns the time by the cluster's clock, which stamps its objects, to a second; before its first answer, by ours."""
        return datetime.now(UTC) + self._ahead

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    # -- objects

    async def get(self, path: str) -> Object | None:
        """Returns None if it does not exist."""
        try:
            return await self._object("GET", path)
        except ClusterRefused as refused:
            if refused.status == 404:
                return None
            raise

    async def list_all(self, path: str, *, labels: str = "") -> tuple[list[Object], str]:
        """Returns all of a collection, and the version from which to watch it."""
        found: list[Object] = []
        going_on = ""
        while True:
            query = {"labelSelector": labels, "limit": str(limits.LIST_PAGE), "continue": going_on}
            try:
                page = await self._object("GET", path, query={name: value for name, value in query.items() if value})
            except ClusterRefused as refused:
                if refused.status != 410 or not going_on:
                    raise
                found, going_on = [], ""  # the list is too old to continue
                continue
            found += page["items"]
            going_on = page["metadata"].get("continue", "")
            if not going_on:
                return found, str(page["metadata"]["resourceVersion"])

    async def create(self, path: str, obj: Object) -> Object:
        return await self._object("POST", path, obj)

    async def patch(
        self, path: str, patch: Object, *, content_type: str = MERGE_PATCH, query: Mapping[str, str] | None = None
    ) -> Object:
        return await self._object("PATCH", path, patch, query=query, content_type=content_type)

    async def delete(self, path: str, *, uid: str | None = None, grace_s: int | None = None) -> bool:
        """Returns whether it existed. With a ``uid`` only that object is deleted, not another one with its name."""
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        try:
            await self._object("DELETE", path, options)
        except ClusterRefused as refused:
            if refused.status == 404 or (refused.status == 409 and uid is not None):
                return False
            raise
        return True

    # -- watching

    async def watch(
        self, path: str, version: str, *, labels: str = "", for_s: float = limits.WATCH_LASTS_S
    ) -> AsyncIterator[tuple[str, Object]]:
        """Yields the changes after ``version``, as (ADDED, MODIFIED, DELETED or BOOKMARK; the object), until the server ends it.
        Raises :class:`ClusterRefused` with status 410 when the server no longer remembers that version.
        """
        query = {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": version, "timeoutSeconds": str(int(for_s))}
        if labels:
            query["labelSelector"] = labels
        async with self.stream("GET", path, query, silence_s=for_s + limits.WATCH_SILENCE_S - limits.WATCH_LASTS_S) as lines:
            async for line in lines:
                event = self._read(200, line)
                if event["type"] == "ERROR":
                    raise _refusal(int(event["object"].get("code", 500)), event["object"])
                yield event["type"], event["object"]

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, query: Mapping[str, str], *, silence_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yields its lines, as they arrive. Raises :class:`ClusterUnavailable` when it breaks off."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=limits.CONNECT_S, sock_read=silence_s)
        async with self._pace:
            pass
        try:
            async with await self._asked(method, path, query, timeout) as answer:
                if answer.status >= 400:
                    raise _refusal(answer.status, _said(await answer.read()))
                if answer.status >= 300:
                    self._read(answer.status, b"")
                yield _lines(answer.content)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ClusterUnavailable(f"{self.address.url} has broken off: {error or type(error).__name__}.") from error

    # -- requests

    async def _object(
        self,
        method: str,
        path: str,
        obj: Object | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Object:
        body = None if obj is None else _encode(obj)
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + self._patience_s, limits.FIRST_PAUSE_S
        while True:
            wait_s = pause * random.uniform(0.5, 1.0)
            try:
                async with self._pace:
                    status, headers, text = await self._once(method, path, body, query, content_type)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                if loop.time() + wait_s >= deadline:
                    raise ClusterUnavailable(
                        f"The cluster at {self.address.url} cannot be reached: {str(error) or type(error).__name__}."
                    ) from error
            else:
                if status < 400:
                    return self._read(status, text)
                if status in _PASSING:
                    told = headers.get("Retry-After", "")
                    wait_s = max(wait_s, min(float(told), limits.LONGEST_TOLD_PAUSE_S) if told.isdecimal() else 0.0)
                if status not in _PASSING or loop.time() + wait_s >= deadline:
                    raise _refusal(status, _said(text))
            await asyncio.sleep(wait_s)
            pause = min(2 * pause, limits.LONGEST_PAUSE_S)

    def _read(self, status: int, text: bytes) -> Object:
        """Raises :class:`ClusterRefused` for what another server than the API of a cluster has answered."""
        with contextlib.suppress(msgspec.DecodeError):
            if status < 300 and isinstance(found := _decode(text), dict):
                return found
        what = f"{self.address.url} answered with no object of Kubernetes (status {status})"
        raise ClusterRefused(status, "", f"{what}: is it the API of a cluster, and no proxy that wants a login?")

    async def _once(
        self, method: str, path: str, body: bytes | None, query: Mapping[str, str] | None, content_type: str
    ) -> tuple[int, Mapping[str, str], bytes]:
        timeout = aiohttp.ClientTimeout(total=self._answer_s, sock_connect=limits.CONNECT_S)
        async with await self._asked(
            method, path, query, timeout, data=body, content_type=None if body is None else content_type
        ) as answer:
            if (at := told_time(answer.headers.get("Date"))) is not None:
                self._ahead = at - datetime.now(UTC)
            return answer.status, answer.headers, await answer.read()

    async def _asked(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        within: aiohttp.ClientTimeout,
        *,
        data: bytes | None = None,
        content_type: str | None = None,
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """Returns a request that shows the credentials to the API alone: no redirect is followed."""
        headers = dict(await self.address.credentials.headers())
        if content_type is not None:
            headers["Content-Type"] = content_type
        return self._opened().request(
            method,
            self.address.url + path,
            data=data,
            params=query,
            headers=headers,
            timeout=within,
            allow_redirects=False,
            ssl=self.address.tls or True,
        )

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60.0)
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self._session


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yields lines of any length, because an object of a megabyte is one line. An incomplete last line is dropped."""
    rest = b""
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line


def _said(text: bytes) -> Object:
    try:
        found = _decode(text)
    except msgspec.DecodeError:
        return {"message": text.decode(errors="replace")}
    return found if isinstance(found, dict) else {}


def _refusal(status: int, said: Object) -> ClusterRefused:
    message = str(said.get("message") or f"status {status}")[: limits.MESSAGE_CHARS]
    return ClusterRefused(status, str(said.get("reason") or ""), message)
