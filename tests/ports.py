"""Ports for services that come and go and stay at one address, as an API that is killed and started again."""

from __future__ import annotations

import random
import socket
from pathlib import Path

_FIRST = 10_000
_GIVEN_OUT = Path("/proc/sys/net/ipv4/ip_local_port_range")  # by the kernel, to whoever asks for any port, and to clients
_CLAIMS: list[socket.socket] = []  # kept: they end with this process


def lasting_port() -> int:
    """A port of 127.0.0.1 that nobody takes while its service is away.

    A port that the kernel has chosen is free for all once it is closed, and on a busy machine somebody gets it: another Evenflow, a
    client. So this one is below those, and claimed by a name that all tests of this host see.
    """
    above = int(_GIVEN_OUT.read_text().split()[0])
    while True:
        port = random.SystemRandom().randrange(_FIRST, above)
        claim = socket.socket(socket.AF_UNIX)
        try:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
            claim.bind(f"\0evenflow-test-port-{port}")
        except OSError:
            claim.close()
            continue
        _CLAIMS.append(claim)
        return port
