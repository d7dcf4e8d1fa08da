"""What history says of a run and its task instances, as spans are made from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from evenflow.core.states import RunEvent

_ENDS = frozenset({RunEvent.SUCCEED, RunEvent.FAIL, RunEvent.CANCEL})


class RunMove(NamedTuple):
    at: datetime
    xact: int
    event: str
    state: str


class RunCause(NamedTuple):
    """A run whose task made this one begin: it triggered it, or changed an asset."""

    kind: str
    run_key: int
    traceparent: str | None


class ToldRun(NamedTuple):
    run_key: int
    dag_id: str
    run_id: str
    run_type: str
    version_number: int
    created_at: datetime
    run_after: datetime
    logical_date: datetime | None
    ended_at: datetime | None
    reason: str | None
    backfill_id: int | None
    traceparent: str | None
    moves: Sequence[RunMove]
    causes: Sequence[RunCause]

    @property
    def lives(self) -> int:
        """How often it has ended."""
        return sum(move.event in _ENDS for move in self.moves)


@dataclass(frozen=True, slots=True)
class RunLife:
    """A run from its trigger, or from when people cleared it, to its end. ``number`` counts from 1."""

    number: int
    began_at: datetime
    end: RunMove
    before: RunMove | None  # the end of the life before
    moves: Sequence[RunMove]  # within it

    def has(self, at: datetime, xact: int) -> bool:
        """Whether a move is of this life. What one transaction wrote happened at once."""
        is_later = self.before is None or (at > self.before.at and xact != self.before.xact)
        return is_later and (at <= self.end.at or xact == self.end.xact)


def life_of(run: ToldRun, ended_at: datetime) -> RunLife | None:
    """Returns the life that ended then; None where history has no such end any more."""
    before: RunMove | None = None
    number, began = 1, run.created_at
    moves: list[RunMove] = []
    for move in run.moves:
        moves.append(move)
        if before is not None and len(moves) == 1:
            began = move.at
        if move.event not in _ENDS:
            continue
        if move.at == ended_at:
            return RunLife(number, min(began, move.at), move, before, moves)
        before, number, moves = move, number + 1, []
    return None
