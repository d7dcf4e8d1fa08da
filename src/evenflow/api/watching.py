"""Decides who may watch the system, and where Prometheus scrapes its services."""

from __future__ import annotations

import hmac
import socket
from collections.abc import Mapping
from ipaddress import IPv6Address, ip_address
from typing import Any
from urllib.parse import urlsplit

from starlette.types import Scope

from evenflow.api.bodies import bearer, header
from evenflow.api.refusals import Forbidden, Unauthorized
from evenflow.api.sessions import checked_token
from evenflow.api.tokens import Tokens
from evenflow.core.hosts import is_loopback
from evenflow.telemetry.listener import advertised

WATCHED = frozenset({"/metrics", "/metrics/targets", "/health"})  # they name services, pools, queues, hosts: not public


class Watchers:
    """``secret`` is the token of scrapers (EVENFLOW_METRICS_TOKEN). Without it, callers on this host need none, and others an
    operator's.
    """

    def __init__(self, tokens: Tokens, secret: str) -> None:
        self._tokens, self._secret = tokens, secret

    async def check(self, scope: Scope) -> None:
        """Raises :class:`NotAllowed`."""
        caller, shown = scope.get("client"), bearer(scope)
        if not self._secret and caller is not None and is_local(caller[0]) and _is_for_here(scope):
            return
        if not shown:
            raise Unauthorized(
                "Metrics and the health of the system are told to who shows a token (header Authorization: Bearer ...): the API's "
                "EVENFLOW_METRICS_TOKEN, or an operator's.",
                hint="Probes need none: /health/live and /health/ready.",
            )
        if not (self._secret and hmac.compare_digest(shown.encode(), self._secret.encode())):
            token = await checked_token(self._tokens, shown)
            if token.scope is not None:
                raise Forbidden(
                    "Metrics and the health of the system tell of everybody: this is for those whose role counts everywhere."
                )


_FORWARDED = frozenset({b"forwarded", b"via", b"x-forwarded-for", b"x-real-ip"})  # a proxy on this host sets them


def _is_for_here(scope: Scope) -> bool:
    """Returns whether a request from this host is also meant for it. A proxy forwards the requests of other hosts. A page may have
    a name that was made to mean this host (DNS rebinding), so a browser here sends the request, and names that page.
    """
    if any(name in _FORWARDED for name, _ in scope["headers"]):
        return False
    named = header(scope, b"host")
    if named is None:
        return True  # not a browser
    try:
        host = urlsplit(f"//{named.decode('latin-1')}").hostname or ""
    except ValueError:
        return False
    return _is_address(host) or host.endswith(".localhost") or host in ("localhost", socket.gethostname().lower())


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_local(address: str) -> bool:
    """Returns whether a caller with this address is on this host."""
    return is_loopback(_unmapped(address))


def _unmapped(address: str) -> str:
    """Returns an IPv4 address in its own form, also if a socket for both kinds reports it."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    return str(parsed.ipv4_mapped or parsed) if isinstance(parsed, IPv6Address) else address


def checked_detail(detail: Mapping[str, Any], caller: str | None) -> dict[str, Any]:
    """Returns what a service says of itself, and of the address of its metrics only what it cannot invent: otherwise a holder of a
    fleet's token could have Prometheus ask any address. The host is always the caller's. With TLS it is the one that the service
    names, because its server shows a certificate.
    """
    checked = {name: value for name, value in detail.items() if name not in ("metrics", "scheme")}
    told, secure = detail.get("metrics"), detail.get("scheme") == "https"
    if not isinstance(told, str) or not told.isascii() or not told.isprintable() or len(told) > _ADDRESS:
        return checked
    host, _, port = told.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) < 65_536:
        return checked
    if secure:
        return {**checked, "metrics": told, "scheme": "https"}
    address = None if caller is None else _scraped(host.strip("[]"), int(port), _unmapped(caller))
    return checked if address is None else {**checked, "metrics": address}


_ADDRESS = 270  # characters: a host name, and a port


def _scraped(host: str, port: int, caller: str) -> str | None:
    """Returns the address to scrape, or None if only that host can reach it."""
    if is_loopback(caller):
        return advertised(host if is_loopback(host) else socket.gethostname(), port)
    return None if is_loopback(host) else advertised(caller, port)
