"""Hosts, as addresses and URLs name them."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Returns whether what is sent to a host stays on this machine, by the host's name or address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def in_url(host: str) -> str:
    """Returns a host as it stands in a URL: an address of IPv6 in brackets, others unchanged."""
    return f"[{host}]" if ":" in host else host


def host_of(url: str) -> str:
    """Returns the host of a URL, without user, port and brackets."""
    place = url.strip().partition("://")[2].partition("/")[0].rpartition("@")[2]
    return place[1:].partition("]")[0] if place.startswith("[") else place.partition(":")[0]
