"""Pages of the Spark UI of an application, read for people from the address that its try has told.

A try may tell any address, and this server may reach addresses that the try cannot. So an address must be a number and a port that
every host may have, outside the link-local segment, where clouds keep their secrets. The server there must be the application that
the try has named. Only its pages and its figures are requested, by GET and without anything that our caller has sent. Redirects are
never followed. The pages run no scripts in a browser, because these would run as a page of Evenflow.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

import aiohttp
import msgspec
from starlette.responses import Response
from yarl import URL

from evenflow.api import limits
from evenflow.api.bodies import read_answer
from evenflow.api.refusals import Refused
from evenflow.spark.ui import SparkUi

RULES = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}
_TABS = ("jobs", "stages", "storage", "environment", "executors", "SQL", "connect")
_KILLS = ("jobs/job/kill", "stages/stage/kill")
_SHOWN = re.compile(
    rf"|({'|'.join(_TABS)})/?|(jobs/job|stages/stage|stages/pool|storage/rdd|SQL/execution|connect/session)/?"
    r"|static/[\w.-]+|api/v1/(version|applications(/[\w-]+)*)/?"
)
_TYPES = frozenset(
    {"text/html", "text/css", "text/plain", "application/json", "image/svg+xml", "image/png", "image/x-icon", "font/woff2"}
)
_LEADS = (301, 302, 303, 307, 308)
_ANSWERS = (200, 400, 403, 404)  # a browser takes these as what they are; 401 would log the person out of Evenflow
_OF_IPV4 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96"))  # by NAT64, and as it once was written
_FIRST_PORT = 1024  # those below are of a host's services


def ui_kept(value: Mapping[str, Any]) -> SparkUi:
    """Returns what a try has told and the database has kept. Raises :class:`Refused` for an address that is never requested."""
    try:
        ui = msgspec.convert(value, SparkUi)
        asked = _is_asked(ui.url)
    except msgspec.ValidationError:
        asked = False
    if not asked:
        raise _unreachable("the try has told an address that no page of Spark has")
    return ui if re.fullmatch(r"(/[\w.-]+)*", ui.proxy_base) else replace(ui, proxy_base="")


async def look(ui: SparkUi) -> None:
    """Raises :class:`Refused` where the application does not answer."""
    async with _client() as http:
        await _check(http, ui)


async def show(ui: SparkUi, path: str, query: str, base: str) -> Response:
    """Returns the page at ``path``, for a person who reads it below ``base``. Raises :class:`Refused`."""
    if path.strip("/") in _KILLS:
        raise Refused(
            403,
            "forbidden",
            "Nothing is killed by the Spark UI as it is shown here: it can only be read.",
            hint="To end the task, type: evenflow runs cancel, or evenflow tasks mark.",
        )
    if not _SHOWN.fullmatch(path):
        raise Refused(
            404,
            "not_found",
            f"{path!r} is no page of the Spark UI that is shown here.",
            hint=f"There are {', '.join(_TABS)}, what their links show, and figures of Spark's REST API below api/v1/.",
        )
    async with _client() as http:
        await _check(http, ui)
        asked = URL(f"{ui.url}/{path}").with_query(query)
        status, told, body = await _read(http, asked, limits.SPARK_UI_PAGE, {"X-Forwarded-Context": base})
    if status in _LEADS:
        return Response(status_code=303, headers={"Location": _led(ui, str(asked), told.get("Location", ""), base)})
    kind = told.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind not in _TYPES:
        kind = "application/octet-stream"
    if kind == "text/html":
        body = _with_links(ui, body, base)
    charset = "; charset=utf-8" if kind.startswith("text/") else ""
    return Response(body, status if status in _ANSWERS else 502, {"Content-Type": kind + charset, **RULES})


def tells_settings(path: str) -> bool:
    """Whether what is at ``path`` has the settings of the application: passwords stand among them, and Spark masks them by name."""
    return "environment" in path.split("/")


def _is_asked(url: str) -> bool:
    try:
        parts = urlsplit(url)
        address, port = ipaddress.ip_address(parts.hostname or ""), parts.port
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        address = _within(address) or address
    bare = f"{parts.scheme}://{parts.netloc}" == url and "@" not in parts.netloc and parts.scheme in ("http", "https")
    strange = address.is_link_local or address.is_multicast or address.is_unspecified
    return bare and not strange and port is not None and port >= _FIRST_PORT


def _within(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The address of IPv4 to which this one may lead."""
    if any(address in network for network in _OF_IPV4):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def _client() -> aiohttp.ClientSession:
    """Without what the environment says of proxies and passwords."""
    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=limits.SPARK_UI_ANSWERS))


async def _check(http: aiohttp.ClientSession, ui: SparkUi) -> None:
    """Another program may have the port by now, or always had it."""
    _, _, body = await _read(http, URL(f"{ui.url}/api/v1/applications"), limits.SPARK_APPLICATIONS, {})
    try:
        known = [each["id"] for each in json.loads(body)]
    except (ValueError, TypeError, KeyError, RecursionError):
        known = []
    if ui.application_id not in known:
        raise _silent(ui.url)


async def _read(
    http: aiohttp.ClientSession, url: URL, most: int, headers: Mapping[str, str]
) -> tuple[int, Mapping[str, str], bytes]:
    try:
        async with http.get(url, allow_redirects=False, headers=headers) as answer:
            body = await read_answer(answer, most)
            if body is None:
                raise Refused(502, "unreachable", f"The Spark UI answers with more than {most:,} bytes at {url.path}.")
            return answer.status, answer.headers, body
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise _silent(str(url.origin())) from error


def _silent(url: str) -> Refused:
    """In the same words whatever there is: an author learns nothing of what this server reaches."""
    return _unreachable(f"the application does not answer at {url}")


def _unreachable(why: str) -> Refused:
    return Refused(
        502,
        "unreachable",
        f"The Spark UI of the task cannot be reached from this API server: {why}.",
        hint="It has to be reachable from here; a driver on a local master is reached on its own host alone.",
    )


def _led(ui: SparkUi, asked: str, to: str, base: str) -> str:
    """Where a redirect leads, below ``base``."""
    try:
        parts = urlsplit(urljoin(asked, to))
    except ValueError as error:
        raise _unreachable("it leads nowhere") from error
    if f"{parts.scheme}://{parts.netloc}" != ui.url:
        raise _unreachable("it leads to another address")
    path = parts.path
    for prefix in filter(None, (base, ui.proxy_base)):
        path = path.removeprefix(prefix)
    led = f"{base}/{path.lstrip('/')}" + (f"?{parts.query}" if parts.query else "")
    return quote(led, safe="/%?&=+:@!$'()*,;~")


def _with_links(ui: SparkUi, body: bytes, base: str) -> bytes:
    """What begins with the page's own address, or with what its session was told, begins with ``base``."""
    for origin in filter(None, (ui.url, ui.proxy_base)):
        begins = rb"((?:href|src|action)=[\"'])" + re.escape(origin.encode()) + rb"(?=[/\"'])"
        body = re.sub(begins, rb"\g<1>" + base.encode(), body, count=limits.SPARK_UI_PAGE // len(base))
    return body
