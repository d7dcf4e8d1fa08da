"""Whether an ``evenflow up`` runs on a home, and its address.

A lock says whether it runs, so a killed one leaves no trace; a file has the address. A wanted port is tried first.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import socket
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from evenflow.errors import AlreadyRunning, StartingOrStopping
from evenflow.runtime.home import make_folder

# Where a free port is looked for whose number is all that its program can be told: below the ports that Linux gives to outgoing
# connections. One of these could take the port before the program binds it.
_FREE_PORTS = range(20_000, 32_768)
_LOOKS = 20  # at random ports; after these the system chooses


@dataclass(frozen=True, slots=True, kw_only=True)
class UpPresence:
    """What an ``evenflow up`` publishes."""

    pid: int
    api_url: str
    dags: str
    bundle: str


@contextlib.contextmanager
def claim(home: Path) -> Iterator[Callable[[UpPresence], None]]:
    """Claims ``home`` until the context is left. Yields a function that publishes the address.

    Raises :class:`AlreadyRunning` when another one runs there.
    """
    lock = _open_lock(home)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _taken(home) from None
        _file(home).unlink(missing_ok=True)
        yield lambda presence: _publish(home, presence)
        _file(home).unlink(missing_ok=True)
    finally:
        os.close(lock)


def find(home: Path) -> UpPresence | None:
    """Returns the ``evenflow up`` that runs on ``home``; None when there is none, or it is not ready yet."""
    if not (home / "run" / "up.lock").exists():
        return None
    lock = _open_lock(home)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(home)
    finally:
        os.close(lock)
    return None


@contextlib.contextmanager
def guest(home: Path) -> Iterator[UpPresence | None]:
    """Uses the Evenflow that runs on ``home``, if one does. One that was started for a single command waits for its guests."""
    lock = _open_lock(home, "guests.lock")
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)  # first, so that the found one cannot withdraw
        yield find(home)
    finally:
        os.close(lock)


def withdraw(home: Path) -> bool:
    """Hides this one from others and returns True; with guests, it returns False and changes nothing."""
    lock = _open_lock(home, "guests.lock")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _file(home).unlink(missing_ok=True)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True


def _open_lock(home: Path, name: str = "up.lock") -> int:
    return os.open(make_folder(home, "run") / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _file(home: Path) -> Path:
    return home / "run" / "up.json"


def _publish(home: Path, presence: UpPresence) -> None:
    unfinished = _file(home).with_suffix(".new")
    unfinished.write_text(json.dumps(asdict(presence)))
    unfinished.rename(_file(home))


def _read(home: Path) -> UpPresence | None:
    try:
        return UpPresence(**json.loads(_file(home).read_text()))
    except FileNotFoundError:
        return None


def _taken(home: Path) -> AlreadyRunning:
    running = _read(home)
    if running is None:
        return StartingOrStopping(f"Evenflow is just being started or stopped on {home}. Wait a moment and try again.")
    return AlreadyRunning(
        f"Evenflow already runs on {home}: {running.api_url} (pid {running.pid}, DAG folder {running.dags}). "
        f"Use that one, stop it (kill {running.pid}), or set EVENFLOW_HOME to another directory."
    )


def listen(host: str, port: int, *, who: str = "The API", way: str = "evenflow up --port ") -> socket.socket:
    """Returns a socket that listens there; 0 takes a free port. Raises :class:`AlreadyRunning` when another program has it.

    The error names ``who`` would listen there, and ends with the ``way`` to choose another port.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise AlreadyRunning(
            f"{who} cannot listen on {host}:{port}: {error.strerror}. Stop the program that has the port, or choose another: "
            f"{way}{port + 1} (0 takes a free one)."
        ) from None
    return listener


def port_of(listener: socket.socket) -> int:
    return int(listener.getsockname()[1])


def choose_port(host: str, port: int, *, who: str, way: str) -> int:
    """Returns a port as :func:`listen` finds it, for a program that can only be told its number."""
    if port:
        with listen(host, port, who=who, way=way) as probe:
            return port_of(probe)
    for tried in random.sample(_FREE_PORTS, _LOOKS):
        with contextlib.suppress(AlreadyRunning), listen(host, tried) as probe:
            return port_of(probe)
    with listen(host, 0, who=who, way=way) as probe:
        return port_of(probe)
