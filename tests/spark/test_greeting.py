"""Who listens and says nothing is told from who answers (R-SP6)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from evenflow.spark.greeting import answers, begins_to_answer, begins_to_listen
from tests.ports import lasting_port
from tests.waiting import wait_until

SETTINGS = bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_a_frozen_server_still_listens_and_does_not_answer(listener: socket.socket) -> None:
    address = listener.getsockname()
    socket.create_connection(address).close()
    assert not answers(address, 0.2)
    assert not answers(address, 0.2, tls=True)


@pytest.mark.parametrize("tls", [False, True])
def test_a_greeting_is_an_answer(listener: socket.socket, tls: bool) -> None:
    """With TLS also what is no TLS: something lives there."""

    def serve() -> None:
        peer, _ = listener.accept()
        with peer:
            peer.recv(1024)
            peer.sendall(SETTINGS)

    thread = threading.Thread(target=serve)
    thread.start()
    assert answers(listener.getsockname(), 10.0, tls=tls)
    thread.join()


def test_who_speaks_something_else_is_no_server_of_spark(listener: socket.socket) -> None:
    """As a web server does at a port that somebody has mistyped; pyspark would ask it for ten minutes."""

    def serve() -> None:
        peer, _ = listener.accept()
        with peer:
            peer.recv(1024)
            peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    thread = threading.Thread(target=serve)
    thread.start()
    assert not answers(listener.getsockname(), 10.0)
    thread.join()


def test_nobody_who_listens_is_no_answer(listener: socket.socket) -> None:
    address = listener.getsockname()
    listener.close()
    assert not answers(address, 1.0)


def test_who_hangs_up_is_asked_again(listener: socket.socket) -> None:
    """As one does that was killed a moment ago."""

    def serve() -> None:
        listener.accept()[0].close()
        peer, _ = listener.accept()
        with peer:
            peer.recv(1024)
            peer.sendall(SETTINGS)

    thread = threading.Thread(target=serve)
    thread.start()
    assert begins_to_answer(listener.getsockname(), 30.0)
    thread.join()


def test_who_refuses_may_be_restarting_and_is_asked_again(capsys: pytest.CaptureFixture[str]) -> None:
    """R-SP6: a task that begins meanwhile waits, and says for what."""
    address = ("127.0.0.1", lasting_port())
    with pytest.raises(ConnectionRefusedError):
        begins_to_listen(address, 1.0, 0.0)
    thread = threading.Thread(target=begins_to_listen, args=(address, 1.0, 30.0))
    capsys.readouterr()
    thread.start()
    wait_until(lambda: f"{address[1]} says: Connection refused. Asked again for 30 s." in capsys.readouterr().out)
    with socket.create_server(address):
        thread.join()


def test_a_host_that_is_not_known_is_asked_once() -> None:
    """That is a name that somebody has mistyped."""
    with pytest.raises(socket.gaierror):
        begins_to_listen(("no-such-host.invalid", 1), 1.0, 600.0)
