"""Whether a Spark Connect server answers, asked without Spark: by the greeting of HTTP/2, or of TLS.

A process that is stopped still listens, because the kernel does that; only what the process itself says shows that it lives. A
thread of the network answers the greeting, however busy Spark is.
"""

from __future__ import annotations

import socket
import ssl
import time

PAUSE_S = 0.25  # until a server that hung up is asked again
_SETTINGS = b"\x04"  # the kind of the frame with which a server of HTTP/2 begins
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))  # and settings, all as they are by default


def answers(address: tuple[str, int], within_s: float, *, tls: bool = False) -> bool:
    """Whether something came back within ``within_s``, and as long again for the connection."""
    try:
        with socket.create_connection(address, timeout=within_s) as plain:
            if tls:
                return _shakes_hands(plain, address[0])
            plain.sendall(_PREFACE)
            with plain.makefile("rb") as said:
                head = said.read(9)  # of a frame: its length, kind, flags and stream
            return head[3:4] == _SETTINGS
    except OSError:
        return False


def begins_to_answer(address: tuple[str, int], within_s: float, *, tls: bool = False) -> bool:
    """Like :func:`answers`, for a server that may be starting, or ending and starting again: it hangs up for a while."""
    deadline = time.monotonic() + within_s
    while (left := deadline - time.monotonic()) > 0:
        if answers(address, left, tls=tls):
            return True
        time.sleep(PAUSE_S)
    return False


def knows_tls(address: tuple[str, int], within_s: float) -> bool:
    """Returns whether the server there speaks TLS, if it says anything. Raises :class:`OSError` when no server answers."""
    with socket.create_connection(address, timeout=within_s) as plain:
        error = _handshake_error(plain, address[0])
    return error is None or error.reason != "WRONG_VERSION_NUMBER"


def _shakes_hands(plain: socket.socket, host: str) -> bool:
    """A certificate that is not trusted is an answer, too: the client that sends something checks whether it is right."""
    return not isinstance(_handshake_error(plain, host), ssl.SSLEOFError)


def _handshake_error(plain: socket.socket, host: str) -> ssl.SSLError | None:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["h2"])
    try:
        context.wrap_socket(plain, server_hostname=host).close()
    except ssl.SSLError as error:
        return error
    return None
