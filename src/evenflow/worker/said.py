"""What the process of a try says, as :mod:`evenflow.worker.task_process` sends it: these heads of frames, and no others."""

from __future__ import annotations

import msgspec

from evenflow.core.ending import Ending
from evenflow.wire.messages import Progress, XComPull


class _SaidByTry(msgspec.Struct, tag_field="say"):
    pass


class Pull(XComPull, tag_field="say", tag="pull"):
    """A question for the result of a task; the body of its answer is that."""


class Push(_SaidByTry, tag="push"):
    """A question: whether the body can be kept under this key."""

    key: str


class Ask(_SaidByTry, tag="ask"):
    """Another question, with its arguments as body."""

    question: str


class Progressed(_SaidByTry, tag="progress"):
    """The body says how far."""


class CleaningUp(_SaidByTry, tag="cleaning_up"):
    """It stops what it has started outside."""


class Result(_SaidByTry, tag="result"):
    """What became of the try; the body is its value."""

    ending: Ending


QuestionOfTry = Pull | Push | Ask
AnySaid = QuestionOfTry | Progressed | CleaningUp | Result


_SAID = msgspec.json.Decoder(AnySaid)
_HOW_FAR = msgspec.json.Decoder(Progress)

read_head = _SAID.decode  # raises ValueError for what no try of this version sends, and RecursionError for what has no end
read_progress = _HOW_FAR.decode
