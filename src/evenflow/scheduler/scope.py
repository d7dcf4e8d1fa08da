"""What a transaction of the scheduler may touch. Normally everything; while a fault is looked for, only some runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from evenflow.core.limits import REPORTS_PER_TURN
from evenflow.store.db.rows import Rows
from evenflow.store.scheduling.inbox import TakenReport


class OfRun(Protocol):
    @property
    def run_key(self) -> int: ...


R = TypeVar("R", bound=OfRun)


@dataclass(slots=True)
class Scope:
    """``runs``: only these, ``None`` for all; ``reports``: how many are taken at most. What the transaction reads goes through
    :meth:`within`, so that after a failure the scope says what the transaction was about.
    """

    runs: frozenset[int] | None = None
    reports: int = REPORTS_PER_TURN
    taken: Sequence[TakenReport] = ()
    _read: list[Sequence[OfRun]] = field(default_factory=list)
    _awaited: Rows[Any] | None = None

    @property
    def is_partial(self) -> bool:
        return self.runs is not None

    def within(self, rows: list[R]) -> list[R]:
        """Those that are about runs of this scope."""
        self._read.append(rows)
        return rows if self.runs is None else [row for row in rows if row.run_key in self.runs]

    def await_rows(self, rows: Rows[Any]) -> None:
        """An answer that is to go through :meth:`within`, and counts as well if another one brings an error before it does."""
        self._awaited = rows

    def suspects(self) -> set[int]:
        """The runs of this scope that the transaction has read of."""
        seen = {row.run_key for rows in self._all() for row in rows}
        return seen if self.runs is None else seen & self.runs

    def of_version(self, version_key: int) -> set[int]:
        """Those of them that were to be decided by this version of their DAG."""
        suspects = self.suspects()
        rows = (row for rows in self._all() for row in rows if row.run_key in suspects)
        return {row.run_key for row in rows if getattr(row, "version_key", None) == version_key}

    def _all(self) -> list[Sequence[OfRun]]:
        return self._read if self._read or self._awaited is None else [[row for row in self._awaited.arrived() if row.run_key]]
