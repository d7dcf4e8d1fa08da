"""Ports on which what `evenflow up` starts listens."""

from __future__ import annotations

import socket

from evenflow.errors import AlreadyRunning


def choose_port(host: str, port: int, *, who: str = "The API", way: str = "evenflow up --port ") -> int:
    """``port`` if it is free, a free one if it is 0. Raises :class:`AlreadyRunning` when another program has it.

    The error names ``who`` is to listen there, and the ``way`` to say another port, which it ends with.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise AlreadyRunning(
                f"{who} cannot listen on {host}:{port}: {error.strerror}. Stop the program that has the port, or choose another: "
                f"{way}{port + 1} (0 takes a free one)."
            ) from None
        return int(probe.getsockname()[1])
