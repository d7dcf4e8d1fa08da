"""The owner's handle on a forked child, for one job: its control socket, its output, and commands to it.

A process that returns from its job gets another handle for the next one. The old handle has seen an end and cannot reach the
process any more: it drops later commands. A process that was sent a signal does not return, even if the signal arrives late.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol

from evenflow.forking.exits import Exit
from evenflow.forking.frames import FRAME_LIMIT, FrameBuffer, FrameHeader, pack_frame

LAST_OUTPUT = 2**20  # read after the end of a process: a pipe holds no more, and processes that it left may write for ever
_READ_SIZE = 65536  # the capacity of a pipe
_NOWHERE = socket.socket()
_NOWHERE.close()


class ChildEvents(Protocol):
    """What an owner receives from a child, on the event loop: any number of frames and output, then ``exited``, once and last."""

    def started(self, pid: int) -> None: ...

    def frame(self, head: bytes, body: bytes) -> None:
        """Raises :class:`ValueError` for a frame that no child may send; the child is killed."""
        ...

    def output(self, data: bytes) -> None: ...

    def exited(self, end: Exit) -> None: ...


class OwnedChild:
    """Made by an :class:`OwnedTemplate`; ``pid`` is known once it has started. It waits for ``begin``. The child and all processes
    that it starts bear ``mark`` (see :mod:`evenflow.forking.marks`). ``jobs`` counts the jobs that it has begun; it was forked at
    ``since``, and has returned at ``idle_since``.
    """

    def __init__(self, control: socket.socket, output: int, mark: int, post: Callable[[FrameHeader], None], key: int) -> None:
        self.pid: int | None = None
        self.mark = mark
        self.jobs = 0
        self.since = self.idle_since = 0.0
        self.remembers: object = None  # what its owner knows of its earlier jobs
        self.on_return: Callable[[OwnedChild], None] | None = None  # if set, the child may return, and this gets its next handle
        self._was_signalled = False
        self._has_exited = False
        self.decides = False  # ``events`` decides by :meth:`let_go` about processes that it leaves
        self._post, self.key = post, key
        self._events: ChildEvents | None = None
        self._control = control
        self._output = output
        self._frames = FrameBuffer()
        self._paused = False  # no frames are read
        self._resumes = False  # once everything is sent
        self._outgoing = bytearray()
        self.queued = 0  # all bytes ever put into its outbox
        self._fault: str | None = None
        self._held: Callable[[int], None] | None = None  # called once its pid is known, before it has its job
        self._loop = asyncio.get_running_loop()

    @property
    def waits(self) -> bool:
        """Whether the child is alive and silent, before it has a job. The template may not have reported its death yet."""
        try:
            self._control.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def begin(self, job: FrameHeader, events: ChildEvents, admit: Callable[[int], None] | None = None) -> None:
        """Gives the child its job; from now on ``events`` is called, always with its exit. Before the job, ``admit`` is called with
        its pid. If ``admit`` raises :class:`OSError`, the child is killed without a job, and its exit is lost for that reason.
        """
        self._events = events
        self.jobs += 1
        self._loop.add_reader(self._control, self._read_control)
        self._loop.add_reader(self._output, self._read_output)
        if admit is not None:
            self._held = partial(self._begin_admitted, job, events, admit)
        if self.pid is not None:
            self.on_started(self.pid)
        if admit is None:
            self.send(job)

    def _begin_admitted(self, job: FrameHeader, events: ChildEvents, admit: Callable[[int], None], pid: int) -> None:
        try:
            admit(pid)
        except OSError as error:
            self._fault = f"the worker's host could not limit its process: {error}"
            self.send_signal(signal.SIGKILL)
        else:
            events.started(pid)
            self.send(job)

    def send(self, header: FrameHeader, body: bytes = b"") -> None:
        """Answers or commands the child; does nothing once it is gone."""
        waiting = bool(self._outgoing)
        frame = pack_frame(header, body)
        self._outgoing += frame
        self.queued += len(frame)
        if not waiting:
            self._write()

    @property
    def taken(self) -> int:
        """How many of the ``queued`` bytes are in its socket, or beyond."""
        return self.queued - len(self._outgoing)

    def send_signal(self, signum: int) -> None:
        """Sends a signal to its process group; SIGKILL goes to all that it has started. A signal after its end is not an error."""
        if self._control is not _NOWHERE:
            self._was_signalled = True
            self._post({"signal": self.key, "signum": signum})

    def let_go(self) -> None:
        """Tells the template to stop watching processes that the child has left: they are dead, or may stay."""
        self._post({"let_go": self.key})

    def pause_frames(self) -> None:
        """Stops reading the child's frames. They stay in the socket, and when that is full the child waits."""
        self._paused = True
        if self._control.fileno() >= 0:
            self._loop.remove_reader(self._control)

    def resume_frames(self) -> None:
        """Resumes reading once all answers are sent: a child that does not read its answers cannot ask anything more."""
        if self._outgoing:
            self._resumes = True
        elif self._control.fileno() >= 0:
            self._paused = self._resumes = False
            self._loop.add_reader(self._control, self._read_control)
            self._loop.call_soon(self._hand_on, b"")  # frames that came together with the question

    def pause_output(self) -> None:
        """Stops reading output: once its pipe is full, a child that writes waits."""
        if self._output >= 0:
            self._loop.remove_reader(self._output)

    def resume_output(self) -> None:
        if self._output >= 0:
            self._loop.add_reader(self._output, self._read_output)

    # -- called by the template's handle

    def on_started(self, pid: int) -> None:
        self.pid = pid
        if self._held is not None:
            self._held(pid)
        elif self._events is not None:
            self._events.started(pid)

    def on_exited(self, end: Exit) -> None:
        """Handles the death of the process: passes on what it had still written, then its end, whatever that was. Processes that it
        left running may write for ever.
        """
        self._has_exited = True
        try:
            _exhaust(self._read_control, FRAME_LIMIT)
            _exhaust(self._read_output, LAST_OUTPUT)
        finally:
            self._close_control()
            self._close_output()
            if self._events is not None:
                self._events.exited(end if self._fault is None else replace(end, lost=self._fault))

    # -- the two descriptors

    def _read_control(self) -> int:
        if self._control.fileno() < 0 or self._events is None or self._paused:
            return 0
        try:
            data = self._control.recv(_READ_SIZE)
        except BlockingIOError:
            return 0
        except ConnectionResetError:
            data = b""
        if not data:
            self._close_control()
            return 0
        return len(data) if self._hand_on(data) else 0

    def _hand_on(self, data: bytes) -> bool:
        """Returns whether the data was messages."""
        if self._control.fileno() < 0 or self._events is None or self._paused:
            return True
        try:
            for head, body in self._frames.feed(data):
                if not head and self.on_return is not None:
                    if not self._has_exited:
                        self._return(int(body), self.on_return)
                    return True
                self._events.frame(head, body)
                if self._paused:
                    break
        except Exception as error:  # user code may send anything, including endlessly nested JSON
            self._fault = f"the process sent its worker something that is no message: {error}"
            self._close_control()
            self.send_signal(signal.SIGKILL)
            return False
        return True

    def _return(self, rss_kb: int, on_return: Callable[[OwnedChild], None]) -> None:
        """Hands the child over for another job; it gets none if it was told to end. Raises :class:`ValueError` if it sends more."""
        if self._frames:
            raise ValueError("it goes on after its last word")
        if self._was_signalled:
            self.send_signal(signal.SIGKILL)
            return
        _exhaust(self._read_output, LAST_OUTPUT)
        if self._output < 0:
            raise ValueError("it has closed its output")
        events, successor = self._events, OwnedChild(self._control, self._output, self.mark, self._post, self.key)
        assert events is not None
        for descriptor in (self._control, self._output):
            self._loop.remove_reader(descriptor)
        self._loop.remove_writer(self._control)
        self._control, self._output = _NOWHERE, -1
        successor.pid, successor.jobs, successor.since, successor.remembers = self.pid, self.jobs, self.since, self.remembers
        on_return(successor)
        events.exited(Exit(0, rss_kb, alone=True))

    def _read_output(self) -> int:
        if self._output < 0 or self._events is None:
            return 0
        try:
            data = os.read(self._output, _READ_SIZE)
        except BlockingIOError:
            return 0
        if not data:
            self._close_output()
            return 0
        self._events.output(data)
        return len(data)

    def _write(self) -> None:
        try:
            while self._outgoing:
                sent = self._control.send(self._outgoing)
                del self._outgoing[:sent]
        except BlockingIOError:
            self._loop.add_writer(self._control, self._write)
            return
        except OSError:  # closed here, or by the child: its exit is on the way and says more
            self._outgoing.clear()
            self._resumes = False
        if self._control.fileno() >= 0:
            self._loop.remove_writer(self._control)
        if self._resumes:
            self.resume_frames()

    def _close_control(self) -> None:
        if self._control.fileno() >= 0:
            self._loop.remove_reader(self._control)
            self._loop.remove_writer(self._control)
            self._control.close()

    def _close_output(self) -> None:
        if self._output >= 0:
            self._loop.remove_reader(self._output)
            with contextlib.suppress(OSError):
                os.close(self._output)
            self._output = -1


def _exhaust(read: Callable[[], int], at_most: int) -> None:
    """Calls ``read``, which returns how much it has read, until nothing is left."""
    while at_most > 0 and (size := read()):
        at_most -= size
