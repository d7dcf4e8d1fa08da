"""What became of a try, from what its process said and how it ended."""

from __future__ import annotations

from dataclasses import replace
from signal import SIGKILL

from evenflow.core.ending import Ending
from evenflow.forking.exits import Exit, describe_exit
from evenflow.worker.said import Result

_FAILURES = frozenset({"failed", "failed_for_good"})


def ending_of(said: Result, body: bytes) -> Ending:
    """What the process says became of its try. Raises :class:`ValueError` for what user code must have forged."""
    if (said.ending.outcome == "deferred") != (said.ending.defer is not None):
        raise ValueError("only a deferred try says what it waits for")
    return replace(said.ending, result=body or None)


def judge(
    said: Ending | None, end: Exit, *, ended_for: str | None, out_of_memory: str | None, over_limit: str | None = None
) -> Ending:
    """``ended_for`` is why this worker ended the process, ``out_of_memory`` the kernel's evidence, ``over_limit`` that it killed
    for the try's own limit, each if any.
    """
    exit_code = None if end.lost else end.status
    if said is not None and said.outcome in _FAILURES and over_limit:
        return replace(said, reason=f"{said.reason} (out of memory: {over_limit})", exit_code=exit_code)
    if said is not None:
        return replace(said, exit_code=exit_code)
    if ended_for is not None:
        reason = ended_for
    elif end.status == -SIGKILL and not end.lost and over_limit:
        reason = f"out of memory: {over_limit}"
    elif end.status == -SIGKILL and not end.lost and out_of_memory:
        reason = f"out of memory: {out_of_memory}"
    else:
        reason = describe_exit(end)
    return Ending(outcome="failed", reason=reason, exit_code=exit_code)
