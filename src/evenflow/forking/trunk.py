"""The trunk: a process that has imported what every template needs, and forks one for each DAG file that is loaded.

The trunk runs no user code and enters no sandbox, so a template contains nothing of another file. It begins with modules of
Evenflow; importing them costs many times what a small DAG file costs. Messages, with descriptors beside them:

    owner     {"bear": true} + [socket, output]     of the new template
    template  {"pid": n} + [pidfd]                  first on that socket; an end of the socket before it: no template

A template is a child of the trunk's owner, which adopts orphans: it outlives the trunk, and dies with its owner.
"""

from __future__ import annotations

import gc
import io
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import TextIO

from evenflow.forking import prctl

TRUNK = "trunk"  # the argument that makes a module a trunk


def bear_templates(owner: socket.socket, ahead: Callable[[], None]) -> socket.socket:
    """Runs the trunk until the owner ends. Returns in each new template, with its own socket."""
    gc.disable()  # modules stay
    ahead()
    gc.enable()
    gc.collect()
    gc.freeze()  # the collectors of all processes skip it, and so do not copy it
    while True:
        try:
            request, fds, _, _ = socket.recv_fds(owner, 64, 2)
        except ConnectionResetError:  # the owner died with messages unread
            request, fds = b"", []
        if not request:
            os._exit(0)
        theirs, output = fds
        adopted, gone = os.pipe()
        middle = os.fork()
        if middle == 0:
            os.close(gone)
            if _is_template(theirs):
                owner.close()
                return _begin(theirs, output, adopted)
            os._exit(0)
        os.waitpid(middle, 0)
        for fd in (gone, adopted, theirs, output):
            os.close(fd)


def _is_template(theirs: int) -> bool:
    """Forks a template. The process in between dies, so that the owner adopts the template. Only that process can open the right
    descriptor.
    """
    pid = os.fork()
    if pid:
        with socket.socket(fileno=theirs) as owner:
            socket.send_fds(owner, [json.dumps({"pid": pid}).encode()], [os.pidfd_open(pid)])
    return pid == 0


def _begin(theirs: int, output: int, adopted: int) -> socket.socket:
    os.setsid()  # Ctrl-C in a terminal is for the owner
    os.read(adopted, 1)  # the end of the pipe: the process in between is gone, and the parent is the owner
    prctl.die_with_parent(signal.SIGKILL)
    os.dup2(output, 1)
    os.dup2(output, 2)
    for fd in (output, adopted):
        os.close(fd)
    sys.stdout = sys.__stdout__ = _opened(1, sys.stdout)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _opened(2, sys.stderr)  # type: ignore[misc]
    return socket.socket(fileno=theirs)


def _opened(fd: int, like: TextIO) -> io.TextIOWrapper[io.BufferedWriter]:
    """Opens a stream as Python does at its start: a stream remembers whether it can seek, and the trunk may write to a file."""
    raw = io.FileIO(fd, "w", closefd=False)
    raw.name = like.name
    return io.TextIOWrapper(io.BufferedWriter(raw), like.encoding, like.errors, line_buffering=True)
