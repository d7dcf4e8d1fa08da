"""Reads the bodies of requests, and of answers from other servers, up to a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.types import Receive, Scope

from evenflow.api.refusals import Refused, too_large

if TYPE_CHECKING:
    import aiohttp


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """Returns the whole body. Raises :class:`Refused` once it is known to exceed ``limit``, or when the caller hangs up."""
    declared = header(scope, b"content-length")
    if declared is not None and int(declared) > limit:
        raise too_large("The body of the request", limit)
    event = await receive()
    body: bytes = event.get("body", b"")
    if event["type"] == "http.request" and not event.get("more_body"):
        if len(body) > limit:
            raise too_large("The body of the request", limit)
        return body
    parts, size = [body], len(body)
    while event.get("more_body"):
        event = await receive()
        parts.append(event.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise too_large("The body of the request", limit)
    if event["type"] != "http.request":
        raise Refused(400, "hung_up", "The caller hung up before the end of the body.")
    return b"".join(parts)


async def read_answer(answer: aiohttp.ClientResponse, limit: int) -> bytes | None:
    """Returns the whole body of another server's answer, or None once it exceeds ``limit``."""
    body = bytearray()
    async for part in answer.content.iter_chunked(2**16):  # a single read returns only what has arrived so far
        body += part
        if len(body) > limit:
            return None
    return bytes(body)


def header(scope: Scope, name: bytes) -> bytes | None:
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value)
    return None


def bearer(scope: Scope) -> str | None:
    """Returns the token of the Authorization header."""
    value = header(scope, b"authorization")
    if value is None or value[:7].lower() != b"bearer ":
        return None
    return value[7:].decode("latin-1").strip()
