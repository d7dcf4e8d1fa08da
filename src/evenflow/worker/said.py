"""The frames that the process of a try sends, as :mod:`evenflow.worker.task_process` does, and no others. Also decides how the try
ended, from these frames and from the exit of the process.
"""

from __future__ import annotations

from dataclasses import replace
from signal import SIGKILL

import msgspec

from evenflow.core.ending import Ending
from evenflow.forking.exits import Exit, describe_exit
from evenflow.wire.messages import Progress, XComPull


class _SaidByTry(msgspec.Struct, tag_field="say"):
    pass


class Pull(XComPull, tag_field="say", tag="pull"):
    """A question for the result of a task; the answer's body is the result."""


class Push(_SaidByTry, tag="push"):
    """A question: whether the body can be stored under this key."""

    key: str


class Ask(_SaidByTry, tag="ask"):
    """Another question, with its arguments as body."""

    question: str


class Progressed(_SaidByTry, tag="progress"):
    """The body is the progress."""


class CleaningUp(_SaidByTry, tag="cleaning_up"):
    """The process stops what it has started outside."""


class Result(_SaidByTry, tag="result"):
    """The result of the try; the body is its value."""

    ending: Ending


QuestionOfTry = Pull | Push | Ask
AnySaid = QuestionOfTry | Progressed | CleaningUp | Result


_SAID = msgspec.json.Decoder(AnySaid)
_HOW_FAR = msgspec.json.Decoder(Progress)

read_head = _SAID.decode  # raises ValueError for frames that no try of this version sends, and RecursionError for endless nesting
read_progress = _HOW_FAR.decode


_FAILURES = frozenset({"failed", "failed_for_good"})


def ending_of(said: Result, body: bytes) -> Ending:
    """Returns the ending that the process reports. Raises :class:`ValueError` for one that user code must have forged."""
    if (said.ending.outcome == "deferred") != (said.ending.defer is not None):
        raise ValueError("only a deferred try says what it waits for")
    return replace(said.ending, result=body or None)


def judge(
    said: Ending | None, end: Exit, *, ended_for: str | None, out_of_memory: str | None, over_limit: str | None = None
) -> Ending:
    """Decides how a try ended. ``ended_for`` is why this worker ended the process, ``out_of_memory`` the kernel's evidence,
    ``over_limit`` what the kernel did because of the try's own limits, each if any. A process that did not stand still in time is
    lost through no fault of its task.
    """
    exit_code = None if end.is_lost else end.status
    if said is not None and said.outcome in _FAILURES and over_limit:
        return replace(said, reason=f"{said.reason} ({over_limit})", exit_code=exit_code)
    if said is not None:
        return replace(said, exit_code=exit_code)
    if ended_for is not None:
        reason = ended_for
    elif end.status == -SIGKILL and not end.is_lost and over_limit:
        reason = over_limit
    elif end.status == -SIGKILL and not end.is_lost and out_of_memory:
        reason = f"out of memory: {out_of_memory}"
    else:
        reason = describe_exit(end) + (f" ({over_limit})" if over_limit else "")
    is_lost = end.unfrozen and ended_for is None
    return Ending(outcome="lost" if is_lost else "failed", reason=reason, exit_code=exit_code)
