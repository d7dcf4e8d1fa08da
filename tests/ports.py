"""Ports for services that come and go and stay at one address, as an API that is killed and started again."""

from __future__ import annotations

import socket

from evenflow.runtime.up.presence import choose_port

_CLAIMS: list[socket.socket] = []  # kept: they end with this process


def lasting_port() -> int:
    """A port of 127.0.0.1 that nobody takes while its service is away: one that no outgoing connection gets, claimed by a name that
    all tests of this host see.
    """
    while True:
        port = choose_port("127.0.0.1", 0, who="A service of a test", way="")
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0evenflow-test-port-{port}")
        except OSError:
            claim.close()
            continue
        _CLAIMS.append(claim)
        return port
