"""Roles of people and of programs that act for them: each role may do all that the roles before it may."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    VIEWER = "viewer"
    AUTHOR = "author"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def may(self) -> str:
        """What the role adds to the roles before it, for people."""
        return _MAY[self]

    def allows(self, needed: Role) -> bool:
        """Returns whether this role may do what needs the role ``needed``."""
        return _LADDER.index(self) >= _LADDER.index(needed)


_LADDER = tuple(Role)
_MAY = {
    Role.VIEWER: "see DAGs, runs, logs, results, code and capacity",
    Role.AUTHOR: "trigger, cancel, clear, mark and backfill runs, pause DAGs, say that an asset has changed",
    Role.OPERATOR: "change what all share (pools, executors, fleets, settings, connections), see secrets, delete, read events",
    Role.ADMIN: "say who may do what, end sessions of others, change the keys of secrets",
}
