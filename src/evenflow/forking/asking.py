"""Questions of a template to its owner while it loads what its children will share: one at a time, each with one answer.

template  {"ask": question}
owner     {"answer": piece of the answer's JSON, "more": bool}     as many as it takes: a message has a limit
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from evenflow.errors import EvenflowError
from evenflow.forking.frames import FrameHeader, WrongProcess

PIECE = 16_000  # characters of ASCII; in JSON once more at most twice as many, and a message is longer
_SIZE = 65536  # of a message

AskOwner = Callable[[FrameHeader], FrameHeader]
AnswerTemplate = Callable[[FrameHeader], Awaitable[FrameHeader]]


class NothingAsked(EvenflowError):
    """A template asks its owner when it does not load any more."""

    def __init__(self) -> None:
        super().__init__("Evenflow's values are given to a file only while it is loaded. Ask for them in a task.")


class _OwnerLine:
    def __init__(self, owner: socket.socket) -> None:
        self._owner, self._pid, self._turn = owner, os.getpid(), threading.Lock()

    def ask(self, question: FrameHeader) -> FrameHeader:
        if os.getpid() != self._pid:
            raise WrongProcess
        with self._turn:
            self._owner.send(json.dumps({"ask": question}, separators=(",", ":")).encode())
            pieces: list[str] = []
            more = True
            while more:
                data = self._owner.recv(_SIZE)
                if not data:
                    raise EOFError("the process that owns this one has closed the connection")
                message = json.loads(data)
                pieces.append(message["answer"])
                more = message["more"]
        answer: FrameHeader = json.loads("".join(pieces))
        return answer


_line: _OwnerLine | None = None


@contextmanager
def asking(owner: socket.socket) -> Iterator[None]:
    """Inside, :func:`ask_owner` works."""
    global _line
    _line = _OwnerLine(owner)
    try:
        yield
    finally:
        _line = None


def ask_owner(question: FrameHeader) -> FrameHeader:
    """Returns the owner's answer. Raises :class:`NothingAsked` when the template is ready, and :class:`EOFError` when the owner is
    gone.
    """
    if _line is None:
        raise NothingAsked
    return _line.ask(question)


def pieces_of(answer: FrameHeader) -> Iterator[FrameHeader]:
    """Yields the messages of an answer, for the owner."""
    text = json.dumps(answer)
    for at in range(0, len(text), PIECE):
        yield {"answer": text[at : at + PIECE], "more": at + PIECE < len(text)}
