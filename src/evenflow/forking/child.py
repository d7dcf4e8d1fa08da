"""The life of a child from fork to exit. Each task pays for every page touched here, so nothing is imported or torn down.

A job with ``returns``, in bytes, may be followed by another one. Its process first records its state, restores it after the job
(:mod:`evenflow.forking.clean_state`), and waits. If it cannot restore it, or its memory has grown by more than these bytes, it ends
like any other child.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import NoReturn

from evenflow.forking import prctl
from evenflow.forking.clean_state import CleanState, Dirty, rss_kb
from evenflow.forking.frames import FrameHeader, Link
from evenflow.forking.marks import bear

Respond = Callable[[FrameHeader, Link], tuple[FrameHeader, bytes]]  # a job and the link to its owner; the answer is the last frame

FAILED_OUTSIDE_USER_CODE = 70  # as EX_SOFTWARE in sysexits.h

# The template blocks these signals, so that a signal to a child in its first instants waits until the child can take it.
BLOCKED_IN_TEMPLATE = frozenset({signal.SIGTERM, signal.SIGINT})


def run_child(
    run: Respond,
    output: int,
    control: int,
    *,
    template: int,
    close: Sequence[int],
    mark: int,
    memory_limit: int | None,
    root: str,
    handed: Sequence[int],
) -> NoReturn:
    """Runs the child: a new session, ``output`` as stdout and stderr, one job from ``control``, and its result written there.

    ``template`` is the pid of the parent, whose death kills this process; ``close`` are the parent's descriptors, ``root`` is the
    folder of the user's code. Descriptors that are ``handed`` to the job have :attr:`Link.handed`.
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
        _work(run, Link(socket.socket(fileno=control), handed), me, root)
        code = 0
    except BaseException:
        traceback.print_exc()
        _flush()
    finally:
        os._exit(code)


def _work(run: Respond, link: Link, me: int, root: str) -> None:
    before: CleanState | None = None
    job, _ = link.receive()
    while True:
        if (returns := job.pop("returns", None)) is None:
            header, body = run(job, link)
        else:
            if before is None:
                prctl.adopt_orphans()  # also processes that lost their parent are found
                before = CleanState(root)
            link.spoiled = False
            header, body = contextvars.copy_context().run(run, job, link)
        if os.getpid() != me:  # user code forked and let the copy return here; only the original reports
            return
        _flush()
        if before is None or returns is None or not _is_back(before, link, returns):
            link.send(header, body)
            return
        link.send_last(header, body, rss_kb())
        del header, body
        try:
            job, _ = link.receive()
        except EOFError:  # the owner does not need it any more
            return


def _is_back(before: CleanState, link: Link, memory: int) -> bool:
    """Returns whether another job may follow; if not, it logs the reason. Never raises, because the result of the try counts
    anyway.
    """
    try:
        if not link.spoiled:
            before.restore(memory)
    except Dirty as reason:
        _log(f"\n-- no other try follows in this process: {reason} --\n")
        return False
    except Exception:  # a try may have done anything to this interpreter
        _log(traceback.format_exc())
        return False
    return not link.spoiled


def _log(text: str) -> None:
    """Writes past ``sys.stdout``, which a try may have closed or replaced."""
    with contextlib.suppress(Exception):
        os.write(1, text.encode(errors="backslashreplace"))


def _default_signals() -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, BLOCKED_IN_TEMPLATE)  # from now on they may arrive


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # user code closed or replaced it, and loses what it held
            continue
