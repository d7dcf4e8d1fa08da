"""The owner's handle on a trunk, and on the processes of templates: programs of their own, or forks of a trunk."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from evenflow.errors import EvenflowError
from evenflow.forking import prctl
from evenflow.forking.trunk import TRUNK

_FIRST = 64  # bytes: {"pid": n}


class NotBorn(EvenflowError):
    """A trunk has ended, or cannot fork."""

    def __init__(self) -> None:
        super().__init__("the worker's host could not start a process for it")


class OwnedProcess:
    """The process of a template, a child of this process. ``pidfd`` is readable once it has ended; the owner then calls
    :meth:`wait`.
    """

    pids: ClassVar[set[int]] = set()  # other code must not wait for them

    def __init__(self, pid: int, pidfd: int) -> None:
        self.pid, self.pidfd = pid, pidfd
        self._status: int | None = None
        self.pids.add(pid)

    def send_signal(self, signum: int) -> None:
        """Sends a signal; a signal after the end is not an error."""
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, signum)

    def wait(self) -> int:
        """Returns the status as :func:`os.waitstatus_to_exitcode` has it."""
        if self._status is None:
            ended = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED)
            assert ended is not None
            self._status = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
            os.close(self.pidfd)
            self.pids.discard(self.pid)
        return self._status

    def memory(self) -> int:
        """Returns the bytes that its end frees: those that it shares with no other process; where the kernel hides that, all that
        it has.
        """
        try:
            lines = Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()
            sizes = [line for line in lines if line.startswith("Private_")]
        except PermissionError:
            lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
            sizes = [line for line in lines if line.startswith("VmRSS:")]
        return sum(1024 * int(line.split()[1]) for line in sizes)


class SpawnedProcess(OwnedProcess):
    """``module``, run by ``python``, by default this process's, in a new session, with ``arguments`` and the descriptor
    ``inherited``, whose number comes first.
    """

    def __init__(
        self, module: str, env: Mapping[str, str], inherited: int, *arguments: str, output: int | None = None, python: str = ""
    ) -> None:
        self._process = subprocess.Popen(
            [python or sys.executable, "-P", "-m", module, str(inherited), *arguments],
            env=env,
            pass_fds=[inherited],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C in a terminal is for the owner
        )
        super().__init__(self._process.pid, os.pidfd_open(self._process.pid))

    def wait(self) -> int:
        if self._process.returncode is None:
            self._process.returncode = super().wait()
        return self._process.returncode


class OwnedTrunk:
    """The trunk starts at once; a call for a template waits until it is ready. ``alive`` is false once it has ended."""

    def __init__(self, module: str, env: Mapping[str, str], python: str = "") -> None:
        prctl.adopt_orphans()
        self._loop = asyncio.get_running_loop()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = SpawnedProcess(module, env, theirs.fileno(), TRUNK, python=python)
        self.pid, self.alive = self._process.pid, True
        self._ended = asyncio.Event()
        self._loop.add_reader(self._process.pidfd, self._die)

    async def bear(self, ours: socket.socket, theirs: int, output: int) -> OwnedProcess:
        """Returns a template that is connected to ``ours``, and owns the other two descriptors. Raises :class:`NotBorn`."""
        try:
            socket.send_fds(self._socket, [b'{"bear": true}'], [theirs, output])
        except OSError as error:
            raise NotBorn from error
        finally:
            os.close(theirs)
            os.close(output)
        readable = asyncio.Event()
        self._loop.add_reader(ours, readable.set)
        try:
            await readable.wait()
        finally:
            self._loop.remove_reader(ours)
        first, fds, _, _ = socket.recv_fds(ours, _FIRST, 1)
        if not first:
            raise NotBorn
        return OwnedProcess(json.loads(first)["pid"], fds[0])

    async def close(self) -> None:
        """Ends the trunk. Templates that it has forked continue."""
        self.alive = False
        self._process.send_signal(signal.SIGKILL)
        await self._ended.wait()

    def _die(self) -> None:
        self.alive = False
        self._loop.remove_reader(self._process.pidfd)
        self._process.wait()
        self._socket.close()
        self._ended.set()
