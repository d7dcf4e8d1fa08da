"""Frames between a child and its owner: two lengths, a small JSON header that both sides understand, a body that only the ends do.

The body is bytes (JSON of a result, of an XCom), so the owner hands values on without parsing them. A child is user code, so its
owner decodes the headers that it understands, each of its form, and no other. What an owner says is believed.
"""

from __future__ import annotations

import codecs
import json
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from evenflow.errors import EvenflowError

FrameHeader = dict[str, Any]
Frame = tuple[bytes, bytes]  # a header's JSON, and a body

# The specs of a very large file, or all results of a large mapped task, fit; one XCom is far below. It bounds what an owner keeps.
FRAME_LIMIT = 64 * 1024 * 1024
HEAD_LIMIT = 1024 * 1024  # of its header: names and reasons; what JSON becomes in memory is many times as large


class WrongProcess(EvenflowError):
    """A process that the task forked speaks to Evenflow: XComs and progress are for the task's own process alone."""

    def __init__(self) -> None:
        super().__init__("A process that this task forked cannot use XComs or progress. Pass the value to the task's own process.")


_LENGTHS = struct.Struct(">II")
_SPELT = "evenflow.spelt"  # what is no Unicode, in the names of files that errors quote, is spelt as Python does
_READ_SIZE = 65536


class FrameTooLarge(EvenflowError):
    """A message between a process of user code and its owner is above the limit."""

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
    """A frame without a head: the process has done its job, is what it was before, and can do another one. The body is what it has
    had in memory at most.
    """
    body = str(rss_kb).encode()
    return _LENGTHS.pack(0, len(body)) + body


def _check_sizes(head: int, body: int) -> None:
    if head > HEAD_LIMIT:
        raise FrameTooLarge(head, HEAD_LIMIT)
    if head + body > FRAME_LIMIT:
        raise FrameTooLarge(head + body, FRAME_LIMIT)


class FrameBuffer:
    """Bytes in, whole frames out."""

    def __init__(self) -> None:
        self._data = bytearray()

    def __bool__(self) -> bool:
        """Whether there are bytes that were not handed out."""
        return bool(self._data)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are whole with ``data``. Those that are not taken are there the next time. Raises
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
    """The child's end: blocking, one question at a time, from any thread of the process that it was made in. ``spoiled``: what did
    the job says that no other one may follow in this process.
    """

    def __init__(self, control: socket.socket) -> None:
        self.spoiled = False
        self._control = control
        self._frames = FrameBuffer()
        self._ahead: list[tuple[FrameHeader, bytes]] = []  # that came together with one that was received
        self._turn = threading.Lock()
        self._pid = os.getpid()
        self._thread = threading.get_ident()  # that signal handlers run in
        self._busy = False  # that thread is in the middle of a frame or a question
        self._then: Callable[[], None] | None = None

    def send(self, header: FrameHeader, body: bytes = b"") -> None:
        self._check_process()
        with self._uninterrupted(), self._turn:
            self._control.sendall(pack_frame(header, body))

    def send_last(self, header: FrameHeader, body: bytes, rss_kb: int) -> None:
        """The last frame of a job, and that this process waits for another one."""
        self._control.sendall(pack_frame(header, body) + pack_return(rss_kb))

    def ask(self, header: FrameHeader, body: bytes = b"") -> tuple[FrameHeader, bytes]:
        """Send a question and return its answer; raises :class:`EOFError` when the owner is gone."""
        self._check_process()
        with self._uninterrupted(), self._turn:
            self._control.sendall(pack_frame(header, body))
            return self.receive()

    def when_free(self, action: Callable[[], None]) -> None:
        """For signal handlers: call ``action``, which may use this link, now, or as soon as a question that the signal has
        interrupted is answered.
        """
        if self._busy:
            self._then = action
        else:
            action()

    def receive(self) -> tuple[FrameHeader, bytes]:
        """The next frame; raises :class:`EOFError` when the owner is gone."""
        while True:
            data = self._control.recv(_READ_SIZE)
            if not data:
                raise EOFError("the process that owns this one has closed the connection")
            if frames := self._heard(data):
                frame, *self._ahead = frames  # the owner sends more than one only to those that look at :meth:`arrived`
                return frame

    def fileno(self) -> int:
        """The socket to wait on until :meth:`arrived` has something."""
        return self._control.fileno()

    def arrived(self) -> list[tuple[FrameHeader, bytes]]:
        """The frames that have arrived, without waiting, from an owner that speaks whenever it has something to say; also those
        that came with the one that was received last. Raises :class:`EOFError` when it is gone.
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
        """Signal handlers run between any two steps of that thread, so it is busy from before it takes its turn until after it."""
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
