"""From fork to exit in a child. Every page touched here is paid for by every task, so nothing is imported and nothing torn down."""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import NoReturn

from evenflow.forking import prctl
from evenflow.forking.frames import Header, Link
from evenflow.forking.marks import bear

Run = Callable[[Header, Link], tuple[Header, bytes]]  # a job and the way to its owner; the answer is the last frame

FAILED_OUTSIDE_USER_CODE = 70  # as EX_SOFTWARE in sysexits.h

# The template blocks these signals, so that one that is sent to a child in its first instants waits until the child can take it.
BLOCKED_IN_TEMPLATE = frozenset({signal.SIGTERM, signal.SIGINT})


def run_child(
    run: Run, output: int, control: int, *, template: int, close: Sequence[int], mark: int, memory_limit: int | None
) -> NoReturn:
    """Be the child: a session of its own, ``output`` as stdout and stderr, one job read from ``control``, its result written there.

    ``template`` is the pid of the parent, whose death kills this process; ``close`` are the parent's descriptors.
    """
    me = os.getpid()
    code = FAILED_OUTSIDE_USER_CODE
    try:
        os.setsid()
        bear(mark)
        prctl.die_with_parent(signal.SIGKILL)
        if os.getppid() != template:
            os._exit(code)
        _default_signals()
        for fd in close:
            os.close(fd)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        if memory_limit is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory_limit, memory_limit))
        link = Link(socket.socket(fileno=control))
        job, _ = link.receive()
        header, body = run(job, link)
        if os.getpid() == me:  # else user code forked and let the copy return to here; only the original speaks
            _flush()
            link.send(header, body)
        code = 0
    except BaseException:
        traceback.print_exc()
        _flush()
    finally:
        os._exit(code)


def _default_signals() -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, BLOCKED_IN_TEMPLATE)  # now, and not before, they may arrive


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # user code closed or replaced it: what it held is its own loss
            continue
