"""Frames between a child and its owner: two lengths, a small JSON header for both sides, and a body for the ends only.

The body is bytes (JSON of a result, of an XCom), so the owner passes values on without parsing them. A child is user code, so its
owner decodes only the headers that it knows, in their exact form. A child trusts its owner.
"""

from __future__ import annotations

import codecs
import json
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from evenflow.errors import EvenflowError

FrameHeader = dict[str, Any]
Frame = tuple[bytes, bytes]  # the JSON of a header, and a body

# The specs of a very large file, or all results of a large mapped task, fit; one XCom is far smaller. This limits an owner's
# memory.
FRAME_LIMIT = 64 * 1024 * 1024
HEAD_LIMIT = 1024 * 1024  # of a header: names and reasons; JSON becomes many times as large in memory


class WrongProcess(EvenflowError):
    """A process that the task forked uses the link to Evenflow: only the task's own process may use XComs and progress."""

    def __init__(self) -> None:
        super().__init__("A process that this task forked cannot use XComs or progress. Pass the value to the task's own process.")


_LENGTHS = struct.Struct(">II")
_SPELT = "evenflow.spelt"  # characters outside Unicode, in file names in errors, are written as Python writes them
_READ_SIZE = 65536


class FrameTooLarge(EvenflowError):
    """A message between a process of user code and its owner exceeds the limit."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"A message of {size:,} bytes is above the limit of {limit:,}. Pass large data through storage.")


def _spell(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return "".join(f"\\\\u{ord(character):04x}" for character in error.object[error.start : error.end]), error.end


codecs.register_error(_SPELT, _spell)


def pack_frame(header: FrameHeader, body: bytes = b"") -> bytes:
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode(errors=_SPELT)
    _check_sizes(len(head), len(body))
    return _LENGTHS.pack(len(head), len(body)) + head + body


def pack_return(rss_kb: int) -> bytes:
    """Returns a frame without a header: the process has done its job, has restored its state, and can do another job. The body is
    its highest memory use.
    """
    body = str(rss_kb).encode()
    return _LENGTHS.pack(0, len(body)) + body


def _check_sizes(head: int, body: int) -> None:
    if head > HEAD_LIMIT:
        raise FrameTooLarge(head, HEAD_LIMIT)
    if head + body > FRAME_LIMIT:
        raise FrameTooLarge(head + body, FRAME_LIMIT)


class FrameBuffer:
    """Turns bytes into whole frames."""

    def __init__(self) -> None:
        self._data = bytearray()

    def __bool__(self) -> bool:
        """Whether bytes are left that belong to no whole frame yet."""
        return bool(self._data)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yields the frames that are whole with ``data``. Frames that the caller does not take come the next time. Raises
        :class:`FrameTooLarge`.
        """
        self._data += data
        return self._whole()

    def _whole(self) -> Iterator[Frame]:
        while len(self._data) >= _LENGTHS.size:
            head_size, body_size = _LENGTHS.unpack_from(self._data)
            _check_sizes(head_size, body_size)
            start, end = _LENGTHS.size + head_size, _LENGTHS.size + head_size + body_size
            if len(self._data) < end:
                return
            frame = bytes(self._data[_LENGTHS.size : start]), bytes(self._data[start:end])
            del self._data[:end]
            yield frame


class Link:
    """The child's end: blocking, one question at a time, from any thread of the process that made it. ``spoiled``: the job's runner
    says that no other job may follow in this process. ``handed`` are descriptors from the owner, for the job.
    """

    def __init__(self, control: socket.socket, handed: Sequence[int] = ()) -> None:
        self.spoiled = False
        self.handed = handed
        self._control = control
        self._frames = FrameBuffer()
        self._ahead: list[tuple[FrameHeader, bytes]] = []  # frames that came together with a received one
        self._turn = threading.Lock()
        self._pid = os.getpid()
        self._thread = threading.get_ident()  # in which signal handlers run
        self._busy = False  # whether that thread is in the middle of a frame or a question
        self._then: Callable[[], None] | None = None

    def send(self, header: FrameHeader, body: bytes = b"") -> None:
        self._check_process()
        with self._uninterrupted(), self._turn:
            self._control.sendall(pack_frame(header, body))

    def send_last(self, header: FrameHeader, body: bytes, rss_kb: int) -> None:
        """Sends the last frame of a job, and that this process waits for another one."""
        self._control.sendall(pack_frame(header, body) + pack_return(rss_kb))

    def ask(self, header: FrameHeader, body: bytes = b"") -> tuple[FrameHeader, bytes]:
        """Sends a question and returns its answer. Raises :class:`EOFError` when the owner is gone."""
        self._check_process()
        with self._uninterrupted(), self._turn:
            self._control.sendall(pack_frame(header, body))
            return self.receive()

    def when_free(self, action: Callable[[], None]) -> None:
        """For signal handlers: calls ``action``, which may use this link, now, or after the answer to a question that the signal
        has interrupted.
        """
        if self._busy:
            self._then = action
        else:
            action()

    def receive(self) -> tuple[FrameHeader, bytes]:
        """Returns the next frame. Raises :class:`EOFError` when the owner is gone."""
        while True:
            data = self._control.recv(_READ_SIZE)
            if not data:
                raise EOFError("the process that owns this one has closed the connection")
            if frames := self._heard(data):
                frame, *self._ahead = frames  # the owner sends several only to children that use :meth:`arrived`
                return frame

    def fileno(self) -> int:
        """Returns the socket to wait on until :meth:`arrived` has something."""
        return self._control.fileno()

    def arrived(self) -> list[tuple[FrameHeader, bytes]]:
        """Returns the frames that have arrived, without waiting, from an owner that sends at any time, and those that came with the
        last received frame. Raises :class:`EOFError` when the owner is gone.
        """
        ahead, self._ahead = self._ahead, []
        try:
            data = self._control.recv(_READ_SIZE, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return ahead
        if not data:
            raise EOFError("the process that owns this one has closed the connection")
        return ahead + self._heard(data)

    def _heard(self, data: bytes) -> list[tuple[FrameHeader, bytes]]:
        return [(json.loads(head), body) for head, body in self._frames.feed(data)]

    @contextmanager
    def _uninterrupted(self) -> Iterator[None]:
        """Marks the thread as busy for the whole turn, because a signal handler may run between any two of its steps."""
        if threading.get_ident() != self._thread or self._busy:
            yield
            return
        self._busy = True
        try:
            yield
        finally:
            self._busy = False
            if self._then is not None:
                action, self._then = self._then, None
                action()

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise WrongProcess
