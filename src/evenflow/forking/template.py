"""The template process: it loads once what its children share, then forks one for each request.

A child starts in about a millisecond and shares the memory of all imports. The template has one thread and only waits. So it can
always signal, reap and report, and leave nothing behind when its owner dies. A module that is run with ``python -m module FD``
becomes a template by calling :func:`serve_template`; FD is a SOCK_SEQPACKET socket to the owner. The messages, JSON beside the
descriptors:

    owner     {config...}                                   once, first
    template  questions, which the owner answers             while it loads (see :mod:`evenflow.forking.asking`)
    template  {"ready": true} | {"failed": summary, "trace": text}
    owner     {"fork": key, "mark": n, "memory_limit": bytes|null} + [output, control, ...]    descriptors of the child; further
                                                            ones are handed to its job
    owner     {"signal": key, "signum": n}                  to the child's process group, SIGKILL to all that it has started;
                                                            after its end it does nothing
    owner     {"let_go": key}                               what a child has left that was not alone is not watched any more
    owner     {"lease": t}                                  children may run until t, by CLOCK_BOOTTIME; without it for ever
    template  {"forked": key, "pid": n} | {"unforked": key, "error": text}
    template  {"exited": key, "status": n, "rss_kb": n, "alone": bool, "unfrozen": bool}    status as os.waitstatus_to_exitcode
                                                            has it; the group is killed, and when alone there was nothing
                                                            else; unfrozen: killed because it did not stand in time

At the end of a lease the template freezes its children, whatever the owner does: a stopped or hanging owner cannot. A process that
does not stand within a second is killed. A later lease resumes them, except those that it was told to kill before.

It adopts its orphans: a process that a task left behind is killed with the task's process group or, if it only changed its group,
as an orphan of the task's session. A process that left by ``setsid`` is let go when its task ends by itself: the owner decides
whether it may stay (:mod:`evenflow.forking.remains`). Until then, it is frozen at the end of a lease and ends with this process,
like a child.
"""

from __future__ import annotations

import array
import contextlib
import faulthandler
import gc
import json
import os
import select
import signal
import socket
import sys
import traceback
from collections import deque
from collections.abc import Callable
from typing import NoReturn, TypeVar

from evenflow.errors import EvenflowError
from evenflow.forking import prctl, sandbox
from evenflow.forking.asking import asking
from evenflow.forking.boot_clock import boot_time
from evenflow.forking.child import BLOCKED_IN_TEMPLATE, FAILED_OUTSIDE_USER_CODE, Respond, run_child
from evenflow.forking.frames import FrameHeader, Link
from evenflow.forking.freezing import Freezer
from evenflow.forking.marks import MarksRefused, check_marks
from evenflow.forking.trunk import TRUNK, bear_templates

T = TypeVar("T")

MESSAGE_LIMIT = 65536  # well under the smallest default socket buffer; only load failures come near it
SUMMARY_LIMIT = 4096  # a line for people
TRACE_LIMIT = 16384  # characters of a load failure's traceback, its end kept
LOOK_S = 0.25  # at the clock while children exist: a wait stands still while the host is suspended, and a lease does not
LOOK_AGAIN_S = 5.0  # at frozen processes: another process may have resumed them

_MOST_FDS_PER_FORK = 3
_ESCAPED = 12  # the most that JSON takes for one character: \ud83d\ude80


class NotPrepared(EvenflowError):
    """What all children would share cannot be loaded: ``str(error)`` is one line, ``trace`` the whole traceback."""

    def __init__(self, summary: str, trace: str) -> None:
        super().__init__(summary)
        self.trace = trace


def serve_template(
    prepare: Callable[[FrameHeader], T],
    run: Callable[[T, FrameHeader, Link], tuple[FrameHeader, bytes]],
    *,
    ahead: Callable[[], None] = lambda: None,
) -> NoReturn:
    """Runs a template, with the socket that ``sys.argv[1]`` names; or, when ``trunk`` follows, a process that forks templates.

    ``prepare`` is called once with the owner's config and loads what the children share, or raises :class:`NotPrepared`. ``run`` is
    called in each child with that and the child's job; its answer is the child's last frame. ``ahead`` loads, in a trunk, what most
    templates would load.
    """
    owner = socket.socket(fileno=int(sys.argv.pop(1)))
    owner.set_inheritable(False)
    sys.dont_write_bytecode = True  # the code's hash does not cover compiled files beside it
    # While user code is imported the owner's socket is not read, so the kernel must watch the owner.
    prctl.die_with_parent(signal.SIGKILL)
    faulthandler.enable()
    if sys.argv[1:] == [TRUNK]:
        del sys.argv[1:]
        owner = bear_templates(owner, ahead)
    try:
        check_marks()
        config = _sandboxed(json.loads(owner.recv(MESSAGE_LIMIT)))
        with asking(owner):
            prepared = prepare(config)
    except MarksRefused as error:
        owner.send(_failure(str(error), ""))
        os._exit(1)
    except NotPrepared as error:
        owner.send(_failure(str(error), error.trace))
        os._exit(1)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, write_through=False)  # type: ignore[union-attr]
        stream.flush()
    _Template(owner, lambda job, link: run(prepared, job, link), config.get("root", "")).serve()


def _sandboxed(config: FrameHeader) -> FrameHeader:
    """Enters the sandbox, and returns the rest of the config."""
    try:
        sandbox.enter(config)
    except OSError as error:
        raise NotPrepared(f"cannot be kept out of the home of its service (EVENFLOW_SANDBOX): {error}", str(error)) from error
    return config


class _Template:
    def __init__(self, owner: socket.socket, run: Respond, root: str) -> None:
        self._owner = owner
        self._run, self._root = run, root
        self._pid = os.getpid()
        self._keys: dict[int, int] = {}  # pid of a living child: its key
        self._pids: dict[int, int] = {}
        self._marks: dict[int, int] = {}  # by pid
        self._left: dict[int, int] = {}  # marks of ended children that left processes, by key, until the owner lets them go
        self._dying: set[int] = set()  # sessions of ended children that may have orphans left
        self._freezer = Freezer(self._pid)
        self._unfrozen: set[int] = set()  # pids of children that it had to kill
        self._until: float | None = None  # until when children may run; None: for ever
        self._outbox: deque[bytes] = deque()  # unread by the owner so far: a stopped owner must not stop this process
        self._poll = select.poll()
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def serve(self) -> NoReturn:
        try:
            self._serve()
        except BaseException:  # whatever it is, nothing is left behind
            if os.getpid() != self._pid:  # a child that got no further than its fork
                os._exit(FAILED_OUTSIDE_USER_CODE)
            traceback.print_exc()
        finally:
            self._end(1)

    def _serve(self) -> NoReturn:
        prctl.adopt_orphans()
        signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED_IN_TEMPLATE)  # the owner decides: its end is this process's end
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        prctl.die_with_parent(0)  # from here on, the end of the socket shows it
        gc.collect()
        gc.freeze()  # a child's collector must not touch, and so copy, what it shares
        self._poll.register(self._owner, select.POLLIN)
        self._poll.register(self._wake_read, select.POLLIN)
        self._tell({"ready": True})
        while True:
            for fd, events in self._poll.poll(self._patience_ms()):
                if fd == self._wake_read:
                    os.read(self._wake_read, 512)
                    self._reap()
                    continue
                if events & select.POLLOUT:
                    self._write()
                if events & ~select.POLLOUT:
                    self._obey()
            if self._until is not None and boot_time() >= self._until:
                self._unfrozen |= self._freezer.freeze(self._undecided()) & self._keys.keys()

    def _patience_ms(self) -> int | None:
        if self._until is None:
            return None
        left = self._until - boot_time()
        if left > 0 and (self._keys or self._left):
            left = min(left, LOOK_S)
        return int(1000 * (left if left > 0 else LOOK_AGAIN_S)) + 1

    def _obey(self) -> None:
        data, fds = _receive(self._owner)
        if not data:
            self._end()
        request = json.loads(data)
        if "fork" in request:
            self._fork(request["fork"], fds, request["mark"], request["memory_limit"])
        elif "lease" in request:
            self._until = request["lease"]
            if boot_time() < request["lease"]:
                self._freezer.thaw()
        elif "let_go" in request:
            self._left.pop(request["let_go"], None)
        elif pid := self._pids.get(request["signal"]):
            if request["signum"] == signal.SIGKILL:
                self._freezer.kill({pid: self._marks[pid]})  # also outside the group: nothing may run beside its successor
            _signal_group(pid, request["signum"])

    def _fork(self, key: int, fds: list[int], mark: int, memory_limit: int | None) -> None:
        output, control, *handed = fds
        try:
            pid = os.fork()
        except OSError as error:
            self._tell({"unforked": key, "error": f"{error.strerror} (errno {error.errno})"})
        else:
            if pid == 0:
                mine = (self._owner.detach(), self._wake_read, self._wake_write)
                run_child(
                    self._run,
                    output,
                    control,
                    template=self._pid,
                    close=mine,
                    mark=mark,
                    memory_limit=memory_limit,
                    root=self._root,
                    handed=handed,
                )
            self._keys[pid], self._pids[key], self._marks[pid] = key, pid, mark
            self._tell({"forked": key, "pid": pid})
        finally:
            for fd in fds:
                os.close(fd)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while info := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                pid = info.si_pid
                key = self._keys.pop(pid, None)
                if key is None:
                    os.waitpid(pid, 0)
                    continue
                _signal_group(pid, signal.SIGKILL)  # before the pid, and with it the group's id, is free for others
                self._dying.add(pid)
                _, status, usage = os.wait4(pid, 0)
                del self._pids[key]
                mark = self._marks.pop(pid)
                if adopted := self._kill_orphans():
                    self._left[key] = mark
                code = os.waitstatus_to_exitcode(status)
                unfrozen = pid in self._unfrozen
                self._unfrozen.discard(pid)
                message = {"exited": key, "status": code, "rss_kb": usage.ru_maxrss, "alone": not adopted, "unfrozen": unfrozen}
                self._tell(message)
        self._kill_orphans()

    def _kill_orphans(self) -> list[int]:
        """Kills all processes that this process has adopted. What an ended child left is here: the kernel moves it before the end
        of its parent is seen.
        """
        if not self._dying:
            return []
        seen = set()
        adopted = [pid for pid in prctl.children() if pid not in self._keys]
        for pid in adopted:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # gone, or another user's by now
                if (session := os.getsid(pid)) in self._dying:
                    seen.add(session)
                    os.kill(pid, signal.SIGKILL)
        self._dying = seen
        return adopted

    def _undecided(self) -> dict[int, int]:
        """Marks by leader; the key of a leader that has ended is a negative number, which is never a pid."""
        return self._marks | {-1 - key: mark for key, mark in self._left.items()}

    def _tell(self, message: FrameHeader) -> None:
        self._outbox.append(_packed(message))
        if len(self._outbox) == 1:
            self._write()

    def _write(self) -> None:
        try:
            while self._outbox:
                self._owner.send(self._outbox[0], socket.MSG_DONTWAIT)
                self._outbox.popleft()
        except BlockingIOError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            self._end()
        self._poll.modify(self._owner, select.POLLIN | (select.POLLOUT if self._outbox else 0))

    def _end(self, code: int = 0) -> NoReturn:
        try:
            with contextlib.suppress(OSError):  # too many files are open: the groups can still be ended
                self._freezer.kill(self._undecided())
            for pid in self._keys:
                with contextlib.suppress(OSError):  # another user's by now: the next can still be ended
                    _signal_group(pid, signal.SIGKILL)
        finally:
            os._exit(code)


def _packed(message: FrameHeader) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def _failure(summary: str, trace: str) -> bytes:
    """Returns a message that fits, whatever its characters: if needed, the trace loses more of its beginning."""
    summary, trace = summary[:SUMMARY_LIMIT], trace[-TRACE_LIMIT:]
    while (over := len(message := _packed({"failed": summary, "trace": trace})) - MESSAGE_LIMIT) > 0:
        trace = trace[-(-over // _ESCAPED) :]  # this many characters are too many in any case
    return message


def _receive(owner: socket.socket) -> tuple[bytes, list[int]]:
    """Receives a message. Empty data means the end of the socket."""
    fds = array.array("i")
    size = socket.CMSG_SPACE(_MOST_FDS_PER_FORK * fds.itemsize)
    try:
        data, ancillary, _, _ = owner.recvmsg(MESSAGE_LIMIT, size, socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:  # the owner died with messages unread
        return b"", []
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    return data, list(fds)


def _signal_group(leader: int, signum: int) -> None:
    """Signals a child's group. ``leader`` is an unreaped child, so its pid is still its own; before its setsid the group is the
    child alone.
    """
    try:
        os.killpg(leader, signum)
    except ProcessLookupError:
        os.kill(leader, signum)
