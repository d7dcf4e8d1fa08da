"""Roles of people and of what acts for them: each may do all that those before it may."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    VIEWER = "viewer"  # sees DAGs, runs, logs, results, capacity
    AUTHOR = "author"  # triggers, clears, marks, cancels and backfills runs, pauses DAGs
    OPERATOR = (
        "operator"  # steers what everybody shares: pools, executors, fleets, settings, connections; deletes; reads the events
    )
    ADMIN = "admin"  # says who else may do what

    def allows(self, needed: Role) -> bool:
        """Whether who has this role may do what ``needed`` is for."""
        return _LADDER.index(self) >= _LADDER.index(needed)


_LADDER = tuple(Role)
