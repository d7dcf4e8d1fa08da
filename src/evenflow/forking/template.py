"""The template process: it loads once what its children share, then forks one for each request.

A child starts in about a millisecond and shares the memory of all imports. The template has one thread and does nothing but
wait; so it is always there to signal, reap and report, and to leave nothing behind when its owner dies. A module that is run with
``python -m module FD`` becomes one by calling :func:`serve_template`; FD is a SOCK_SEQPACKET socket to the owner. The
messages, JSON beside the descriptors:

    owner     {config...}                                   once, first
    template  {"ready": true} | {"failed": summary, "trace": text}
    owner     {"fork": key, "mark": n, "memory_limit": bytes|null} + [output, control]     descriptors of the child
    owner     {"signal": key, "signum": n}                  to the child's process group, SIGKILL to all that it has started;
                                                            after its end it is no error
    owner     {"let_go": key}                               what a child has left that was not alone is not watched any more
    owner     {"lease": t}                                  children may run until t, by CLOCK_BOOTTIME; without it for ever
    template  {"forked": key, "pid": n} | {"unforked": key, "error": text}
    template  {"exited": key, "status": n, "rss_kb": n, "alone": bool, "unfrozen": bool}    status as os.waitstatus_to_exitcode
                                                            has it; the group is killed, and when alone there was nothing
                                                            else; unfrozen: killed because it did not stand in time

At the end of a lease it freezes its children, whatever has become of its owner: one that is stopped or hangs cannot do so. What
does not stand within a second is killed. A later lease lets them go on, except those that it was told to kill before.

It adopts its orphans: what a task started and left behind is killed with the task's process group or, if it only changed its
group, found here as an orphan of the task's session. A process that left by ``setsid`` is let go when its task ends by itself: the
owner decides whether it may stay (:mod:`evenflow.forking.remains`). Until it has, that is frozen
at the end of a lease and ends with this process, as a child does.
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
LOOK_S = 0.25  # at the clock while there are children: a wait stands still with a host that is suspended, and a lease does not
LOOK_AGAIN_S = 5.0  # at what is frozen: nothing in it can run, but somebody else may have let it go on

_FDS_PER_FORK = 2
_ESCAPED = 12  # bytes that JSON takes for a character at most: \ud83d\ude80


class NotPrepared(EvenflowError):
    """What all children would share cannot be loaded: ``str(error)`` is one line, ``trace`` the whole story."""

    def __init__(self, summary: str, trace: str) -> None:
        super().__init__(summary)
        self.trace = trace


def serve_template(
    prepare: Callable[[FrameHeader], T],
    run: Callable[[T, FrameHeader, Link], tuple[FrameHeader, bytes]],
    *,
    ahead: Callable[[], None] = lambda: None,
) -> NoReturn:
    """Be a template, with the socket that ``sys.argv[1]`` names; or, when ``trunk`` follows it, what forks templates.

    ``prepare`` is called once with the owner's config and loads what the children share, or raises :class:`NotPrepared`. ``run`` is
    called in each child with that and the child's job; its answer is the child's last frame. ``ahead`` loads, in a trunk, what most
    templates would.
    """
    owner = socket.socket(fileno=int(sys.argv.pop(1)))
    owner.set_inheritable(False)
    sys.dont_write_bytecode = True  # beside the code it would be what the hash of that does not know
    # While user code is imported nobody reads the owner's socket, so the kernel must watch the owner.
    prctl.die_with_parent(signal.SIGKILL)
    faulthandler.enable()
    if sys.argv[1:] == [TRUNK]:
        del sys.argv[1:]
        owner = bear_templates(owner, ahead)
    try:
        check_marks()
        config = _sandboxed(json.loads(owner.recv(MESSAGE_LIMIT)))
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
    """What is left of the config when this process is where user code may be."""
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
        self._left: dict[int, int] = {}  # marks of ended children that were not alone, by key, until the owner lets them go
        self._dying: set[int] = set()  # sessions of ended children that may have orphans left
        self._freezer = Freezer(self._pid)
        self._unfrozen: set[int] = set()  # pids of children that it had to kill
        self._until: float | None = None  # children may run; None: for ever
        self._outbox: deque[bytes] = deque()  # what the owner does not read yet: one that is stopped must not stop this process
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
        prctl.die_with_parent(0)  # from here on, the end of the socket says it
        gc.collect()
        gc.freeze()  # the collector of a child must not touch, and so copy, what it shares
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
                self._freezer.kill({pid: self._marks[pid]})  # what has left the group, too: nothing of it may go on when others do
            _signal_group(pid, request["signum"])

    def _fork(self, key: int, fds: list[int], mark: int, memory_limit: int | None) -> None:
        output, control = fds
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
                )
            self._keys[pid], self._pids[key], self._marks[pid] = key, pid, mark
            self._tell({"forked": key, "pid": pid})
        finally:
            os.close(output)
            os.close(control)

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
        """All that this process has adopted. Nothing that an ended child has left is elsewhere: it comes here before its parent's
        end is seen.
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
        """Marks by leader; the key of a leader that has ended is a negative number, which no pid is."""
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
            with contextlib.suppress(OSError):  # too many files are open: the groups may still be ended
                self._freezer.kill(self._undecided())
            for pid in self._keys:
                with contextlib.suppress(OSError):  # another user's by now: the next may still be ended
                    _signal_group(pid, signal.SIGKILL)
        finally:
            os._exit(code)


def _packed(message: FrameHeader) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def _failure(summary: str, trace: str) -> bytes:
    """The message fits, whatever it is written in: else the trace loses more of its beginning."""
    summary, trace = summary[:SUMMARY_LIMIT], trace[-TRACE_LIMIT:]
    while (over := len(message := _packed({"failed": summary, "trace": trace})) - MESSAGE_LIMIT) > 0:
        trace = trace[-(-over // _ESCAPED) :]  # so many characters are too many in any case
    return message


def _receive(owner: socket.socket) -> tuple[bytes, list[int]]:
    """No data is the end of the socket."""
    fds = array.array("i")
    size = socket.CMSG_SPACE(_FDS_PER_FORK * fds.itemsize)
    try:
        data, ancillary, _, _ = owner.recvmsg(MESSAGE_LIMIT, size, socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:  # the owner died with messages unread
        return b"", []
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    return data, list(fds)


def _signal_group(leader: int, signum: int) -> None:
    """``leader`` is an unreaped child, so its pid is its own; before its setsid it is all that there is of the group."""
    try:
        os.killpg(leader, signum)
    except ProcessLookupError:
        os.kill(leader, signum)
