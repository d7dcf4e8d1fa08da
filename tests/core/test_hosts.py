"""Hosts, as addresses and URLs name them."""

from __future__ import annotations

import pytest

from evenflow.core.hosts import host_of, in_url, is_loopback


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.8.8", "::1"])
def test_what_is_sent_to_this_machine_stays_here(host: str) -> None:
    """R-SE4: so plain HTTP is allowed there."""
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["localhost.example.com", "10.0.0.1", "0.0.0.0", "::", "fe80::1", ""])
def test_what_is_sent_elsewhere_does_not(host: str) -> None:
    """R-SE4"""
    assert not is_loopback(host)


def test_an_address_of_ipv6_has_brackets_in_a_url() -> None:
    """R-SE4: else its last part would be read as a port."""
    assert [in_url(host) for host in ("::1", "10.0.0.1", "db.example.com")] == ["[::1]", "10.0.0.1", "db.example.com"]


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://127.0.0.1:8974", "127.0.0.1"),
        ("https://[::1]:8974/ui", "::1"),
        (" https://me:word@evenflow-api/x@y ", "evenflow-api"),
        ("api", ""),
    ],
)
def test_the_host_of_a_url(url: str, host: str) -> None:
    """R-SE4: without what stands around it."""
    assert host_of(url) == host
