"""Whether a Spark master or Spark Connect server is there, asked without Spark, which would ask for minutes before it reports that
none is. One that is just restarting is waited for, because no task has failed by that.

A Connect server is asked by the greeting of HTTP/2, or of TLS. A process that is stopped still listens, because the kernel does
that; only what the process itself says shows that it lives. A thread of the network answers the greeting, however busy Spark is.
"""

from __future__ import annotations

import socket
import ssl
import time

from evenflow.errors import SparkUnavailable
from evenflow.sdk.secrets.connections import env_name
from evenflow.spark.limits import CONNECT_BEGINS, LISTENS, OWN_CONNECT_BEGINS, RETURNS
from evenflow.spark.target import SparkTarget, speaks_tls

PAUSE_S = 0.25  # until a server that hung up is asked again
_SETTINGS = b"\x04"  # the kind of the frame with which a server of HTTP/2 begins
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))  # and settings, all as they are by default


def require_listener(target: SparkTarget, conn_id: str) -> None:
    """Waits until the server of ``target`` listens, and a Connect server answers, too. Raises :class:`SparkUnavailable`."""
    if target.address is None:
        return
    host, port = target.address
    try:
        begins_to_listen((host, port), LISTENS, RETURNS)
        if target.connect:
            _require_answer(target, (host, port))
    except OSError as error:
        if target.own_log is not None:
            raise SparkUnavailable(
                f"Evenflow's own Spark Connect server does not answer at {host}:{port} ({error.strerror or error}). Its log is "
                f"{target.own_log}. If it has no memory, raise EVENFLOW_SPARK_CONNECT_MEMORY; it runs as long as evenflow up."
            ) from error
        what = "Spark Connect server" if target.connect else "Spark master"
        raise SparkUnavailable(
            f"No {what} answers at {host}:{port}, where connection {conn_id!r} points ({error.strerror or error}). "
            f"Start one there, or set {env_name(conn_id)} to where it is."
        ) from error


def _require_answer(target: SparkTarget, address: tuple[str, int]) -> None:
    tls = speaks_tls(target)
    within_s = CONNECT_BEGINS if target.own_log is None else OWN_CONNECT_BEGINS
    if not begins_to_answer(address, within_s, tls=tls):
        raise OSError(f"it takes connections, and says nothing within {within_s:g} s")
    if tls and not knows_tls(address, LISTENS):
        raise OSError("what is there knows no TLS, which pyspark speaks with use_ssl=true, or a token for a host but localhost")


def begins_to_listen(address: tuple[str, int], timeout_s: float, within_s: float) -> None:
    """Returns when something accepts a connection, which may take ``timeout_s``. What refuses may be restarting, so it is asked
    again for ``within_s``; a name that no host has is not. Raises the last :class:`OSError`.
    """
    deadline, told = time.monotonic() + within_s, False
    while True:
        try:
            socket.create_connection(address, timeout=timeout_s).close()
            return
        except socket.gaierror:
            raise
        except OSError as error:
            if time.monotonic() > deadline:
                raise
            if not told:
                print(f"{address[0]}:{address[1]} says: {error.strerror or error}. Asked again for {within_s:g} s.", flush=True)
                told = True
        time.sleep(PAUSE_S)


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
