"""What the process of a try says, as :mod:`evenflow.worker.task_process` sends it: these heads of frames, and no others."""

from __future__ import annotations

from typing import Any

import msgspec

from evenflow.wire.messages import AssetChange, Defer, Outcome


class _Said(msgspec.Struct, tag_field="say"):
    pass


class Pull(_Said, tag="pull"):
    """A question for the result of a task; the body of its answer is that."""

    task_id: str
    key: str
    map_index: int | None
    run_id: str | None = None


class Push(_Said, tag="push"):
    """A question: whether the body can be kept under this key."""

    key: str


class Ask(_Said, tag="ask"):
    """Another question, with its arguments as body."""

    question: str


class Progressed(_Said, tag="progress"):
    """The body says how far."""


class CleaningUp(_Said, tag="cleaning_up"):
    """It stops what it has started outside."""


class Result(_Said, tag="result"):
    """What became of the try; the body is its value."""

    outcome: Outcome
    reason: str | None
    error_types: list[str]
    delay_s: float | None = None
    produced: list[AssetChange] = []
    skip: list[int] = []
    defer: Defer | None = None


Question = Pull | Push | Ask
Said = Question | Progressed | CleaningUp | Result


class HowFar(msgspec.Struct):
    """The body of a progress."""

    label: str
    done: int
    total: int
    detail: dict[str, Any]


_SAID = msgspec.json.Decoder(Said)
_HOW_FAR = msgspec.json.Decoder(HowFar)

read_head = _SAID.decode  # raises ValueError for what no try of this version sends, and RecursionError for what has no end
read_progress = _HOW_FAR.decode
