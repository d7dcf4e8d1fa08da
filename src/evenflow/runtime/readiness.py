"""How a service tells its starter that it is ready, and then that it is live: the ``sd_notify`` protocol, which systemd
understands, too.

``NOTIFY_SOCKET`` names a datagram socket, and the service sends ``READY=1`` to it. A name that begins with ``@`` is abstract: it is
not a file, has no owner and needs no clean-up. Only readiness and restarts depend on these messages.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import MutableMapping

VARIABLE = "NOTIFY_SOCKET"
READY, STOPPING, LIVE = "READY=1", "STOPPING=1", "WATCHDOG=1"
TELL_S = 3.0  # between two messages that a service is live, as beats: a tenth of the time that counts as a hang


class Notifier:
    """The service's side. It removes the variable from the environment, so that no child of the service inherits it."""

    def __init__(self, environ: MutableMapping[str, str]) -> None:
        address = environ.pop(VARIABLE, "")
        self._address = "\0" + address[1:] if address.startswith("@") else address

    def send(self, message: str) -> None:
        """Sends a message. Does nothing without a listener, or if it does not read: a service never waits for it."""
        if self._address:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC) as sender:
                try:
                    sender.sendto(message.encode(), self._address)
                except OSError:
                    return


class ReadinessSocket:
    """The starter's side, one for each child: ``ready`` is set when the child with ``environment`` is ready; ``live_at`` is when it
    last reported that it is ready or live, by the clock of the event loop.
    """

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self.live_at: float | None = None
        self._name = f"evenflow-{os.getpid()}-{secrets.token_hex(8)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        self._socket.bind("\0" + self._name)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket, self._receive)

    @property
    def environment(self) -> dict[str, str]:
        return {VARIABLE: f"@{self._name}"}

    def close(self) -> None:
        self._loop.remove_reader(self._socket)
        self._socket.close()

    def _receive(self) -> None:
        said = self._socket.recv(4096).split(b"\n")
        if READY.encode() in said:
            self.ready.set()
        if {READY.encode(), LIVE.encode()}.intersection(said):
            self.live_at = self._loop.time()
