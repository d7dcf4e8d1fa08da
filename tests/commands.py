"""Commands of Evenflow that cost little.

Each is a process of its own, with its own environment, folder and output. It is forked from one that has imported already what all
commands need, which takes longer than most commands do otherwise. A test that waits for something asks by many of them.

    test      {"arguments": [...], "environment": {...}, "folder": "..."} + [output, errors, told]     descriptors
    command   its pid, then its exit code, on ``told``

Not imported ahead is what looks at the environment or at the streams of its process while it is imported.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

AHEAD = ("cyclopts", "rich.console", "rich.table", "evenflow", "evenflow.client.rest", "evenflow.runtime.settings")
ROOT = Path(__file__).resolve().parents[1]
_MOST_BYTES = 100_000  # of a request


def run_command(
    arguments: Sequence[str], *, environment: Mapping[str, str], folder: Path, within_s: float
) -> subprocess.CompletedProcess[str]:
    """``evenflow ARGUMENTS`` to its end."""
    told, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    request = {"arguments": arguments, "environment": dict(environment), "folder": str(folder)}
    with told, tempfile.TemporaryFile("w+", encoding="utf-8") as output, tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        with theirs:
            handed = [output.fileno(), errors.fileno(), theirs.fileno()]
            socket.send_fds(_server().requests, [json.dumps(request).encode()], handed)
        pid = int(told.recv(_MOST_BYTES))
        told.settimeout(within_s)
        try:
            code = int(told.recv(_MOST_BYTES))
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(["evenflow", *arguments], within_s) from None
        for file in (output, errors):
            file.seek(0)
        return subprocess.CompletedProcess(["evenflow", *arguments], code, output.read(), errors.read())


@dataclass
class _Server:
    """What forks them. It ends with this process, in which ``requests`` is then closed."""

    process: subprocess.Popen[bytes]
    requests: socket.socket


@functools.cache
def _server() -> _Server:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-m", "tests.commands", str(theirs.fileno())]
        nothing = subprocess.DEVNULL
        return _Server(subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()], stdin=nothing, stdout=nothing), ours)


def _serve(owner: socket.socket) -> None:
    """Returns in each new command, when it is as if it had been started."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps who waits for the commands
    while True:
        request, handed, _, _ = socket.recv_fds(owner, _MOST_BYTES, 3)
        if not request:
            os._exit(0)
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            owner.close()
            output, errors, told = handed
            if (pid := os.fork()) == 0:
                os.close(told)
                _become(json.loads(request), output, errors)
                return
            with socket.socket(fileno=told) as tells:
                tells.send(str(pid).encode())
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with contextlib.suppress(BrokenPipeError):  # it took too long
                    tells.send(str(code).encode())
            os._exit(0)
        for each in handed:
            os.close(each)


def _become(request: dict[str, Any], output: int, errors: int) -> None:
    for given, stream in ((output, 1), (errors, 2)):
        os.dup2(given, stream)
        os.close(given)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", encoding="utf-8", closefd=False)  # type: ignore[misc]
    told = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.stderr = sys.__stderr__ = told  # type: ignore[misc]
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["folder"])
    sys.path[0] = request["folder"]
    sys.argv[:] = ["evenflow", *request["arguments"]]


if __name__ == "__main__":
    for name in AHEAD:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    from evenflow.cli import main

    main()
