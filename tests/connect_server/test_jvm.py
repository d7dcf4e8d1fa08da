"""What the server's process is given (R-SP6)."""

from __future__ import annotations

import errno
import socket

import pytest

from evenflow.connect_server.jvm import kept_port


def test_a_port_is_kept_until_who_reuses_addresses_listens_there() -> None:
    """A JVM does, and takes up to a minute for it; whoever else asks for the port, or any port, does not get it meanwhile."""
    with kept_port() as port:
        with socket.socket() as other, pytest.raises(OSError, match="in use") as refused:
            other.bind(("127.0.0.1", port))
        assert refused.value.errno == errno.EADDRINUSE
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        with socket.socket() as jvm:
            jvm.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            jvm.bind(("127.0.0.1", port))
            jvm.listen()
            socket.create_connection(("127.0.0.1", port)).close()
