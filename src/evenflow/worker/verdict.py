"""What became of a try, from what its process said and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from signal import SIGKILL

from evenflow.process.exits import Exit, describe_exit
from evenflow.wire.messages import AssetChange, Defer, Outcome
from evenflow.worker.said import Result


@dataclass(frozen=True, slots=True)
class Verdict:
    outcome: Outcome
    reason: str | None = None
    error_types: list[str] = field(default_factory=list)
    exit_code: int | None = None
    result: bytes | None = None  # JSON
    delay_s: float | None = None
    produced: list[AssetChange] = field(default_factory=list)
    skip: list[int] = field(default_factory=list)
    defer: Defer | None = None


def verdict_of(said: Result, body: bytes) -> Verdict:
    """What the process says became of its try. Raises :class:`ValueError` for what user code must have forged."""
    if (said.outcome == "deferred") != (said.defer is not None):
        raise ValueError("only a deferred try says what it waits for")
    return Verdict(
        said.outcome,
        said.reason,
        said.error_types,
        result=body or None,
        delay_s=said.delay_s,
        produced=said.produced,
        skip=said.skip,
        defer=said.defer,
    )


def judge(said: Verdict | None, end: Exit, *, ended_for: str | None, out_of_memory: str | None) -> Verdict:
    """``ended_for`` is why this worker ended the process, ``out_of_memory`` the kernel's evidence, each if any."""
    exit_code = None if end.lost else end.status
    if said is not None:
        return replace(said, exit_code=exit_code)
    if ended_for is not None:
        reason = ended_for
    elif end.status == -SIGKILL and not end.lost and out_of_memory:
        reason = f"killed by SIGKILL because memory ran out: {out_of_memory}"
    else:
        reason = describe_exit(end)
    return Verdict("failed", reason, exit_code=exit_code)
