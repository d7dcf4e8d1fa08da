"""The harness's side of :mod:`tests.chaos.launcher`: processes that are started there, and how they end."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LAUNCHER = Path(__file__).with_name("launcher.py")
READY_WITHIN_S = 60.0
MESSAGE_BYTES = 65_536


class Started:
    """A process that the launcher has forked. ``returncode`` is None while it lives."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self._nursery, self.pid = nursery, pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        self._nursery.listen(0.0)
        return self.returncode

    def wait(self, seconds: float) -> int | None:
        """Its exit code; None when it still lives after so long."""
        deadline = time.monotonic() + seconds
        while self.poll() is None and (left := deadline - time.monotonic()) > 0:
            self._nursery.listen(left)
        return self.returncode

    def send_signal(self, signum: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, signum)


class Nursery:
    """For one thread. ``environment`` is of the launcher: what a process has from its very start. ``leases`` are the clocks of the
    product that are not its own. End it with :meth:`close`.
    """

    def __init__(self, environment: Mapping[str, str], leases: Mapping[str, float]) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, str(LAUNCHER), str(theirs.fileno()), json.dumps(dict(leases))]
        with theirs:
            self._process = subprocess.Popen(
                command, env={**os.environ, **environment}, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
            )
        self._started: dict[int, Started] = {}

    def start(self, kind: str, environment: Mapping[str, str], *, folder: Path, log: Path, passed: Path, die: Any) -> Started:
        """A service of this kind, which dies with the launcher, and so with this process."""
        request = {
            "kind": kind,
            "environment": dict(environment),
            "folder": str(folder),
            "log": str(log),
            "passed": str(passed),
            "die": die,
        }
        self._socket.send(json.dumps(request).encode())
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline:
            if (pid := self.listen(1.0)) is not None:
                started = self._started[pid] = Started(self, pid)
                return started
        raise AssertionError("the launcher does not answer")

    def listen(self, seconds: float) -> int | None:
        """Hear what it says, for at most so long until it says something; the pid of a process that it has started."""
        while select.select([self._socket], [], [], seconds)[0]:
            seconds = 0.0
            message = json.loads(self._socket.recv(MESSAGE_BYTES) or b"{}")
            if "pid" in message:
                return int(message["pid"])
            if "exited" not in message:
                raise AssertionError("the launcher has ended")
            self._started[message["exited"]].returncode = message["status"]
        return None

    def close(self) -> None:
        for started in self._started.values():
            started.send_signal(signal.SIGKILL)
        self._socket.close()
        self._process.kill()
        self._process.wait()
