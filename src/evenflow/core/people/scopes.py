"""Where the role of a person, token or session counts: in which DAGs, pools and queues."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import NamedTuple

from evenflow.core.limits import MAX_NAME_CHARS, MAX_SCOPE_NAMES
from evenflow.core.people.roles import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonScope:
    """The DAGs in scope have one of the tags, or are in one of the bundles. A kind without names is not limited."""

    tags: tuple[str, ...] = ()
    bundles: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()

    @classmethod
    def read(cls, stored: Mapping[str, Sequence[str]] | None) -> PersonScope | None:
        """The inverse of :meth:`named`."""
        return None if not stored else cls(**{kind: tuple(names) for kind, names in stored.items()})

    @property
    def named(self) -> dict[str, list[str]]:
        """Returns the kinds that are limited, as they are stored."""
        return {kind: sorted(set(names)) for kind, names in asdict(self).items() if names}

    def __str__(self) -> str:
        return "; ".join(f"{kind} {', '.join(names)}" for kind, names in self.named.items())

    def has(self, kind: str, name: str) -> bool:
        """Returns whether the scope includes this one of the ``pools`` or ``queues``."""
        names = getattr(self, kind)
        return not names or name in names

    def lost(self, after: PersonScope) -> PersonScope:
        """Returns what it has and ``after`` has no more. A kind that ``after`` does not name has no limit there; of DAGs a tag or a
        bundle limits both.
        """
        limited = {kind for kind, names in asdict(after).items() if names}
        if limited & {"tags", "bundles"}:
            limited |= {"tags", "bundles"}
        gone = {kind: tuple(name for name in names if name not in getattr(after, kind)) for kind, names in asdict(self).items()}
        return PersonScope(**{kind: names for kind, names in gone.items() if kind in limited})

    def flaw(self) -> str | None:
        """Returns what is wrong with the scope, as a sentence, or None."""
        names = [name for found in asdict(self).values() for name in found]
        if len(names) > MAX_SCOPE_NAMES:
            return f"a scope has at most {MAX_SCOPE_NAMES} names, not {len(names)}"
        for name in names:
            if not name.strip() or len(name) > MAX_NAME_CHARS or not name.isprintable():
                return f"each name of a scope has 1 to {MAX_NAME_CHARS} printable characters, not {name!r:.80}"
        return None


def scope_text(scope: PersonScope | None) -> str | None:
    """Returns the scope as statements take it. None: everything."""
    return json.dumps(scope.named) if scope is not None and scope.named else None


def flaw_of_rights(role: Role, scope: PersonScope | None) -> str | None:
    """Returns why a person with ``role`` cannot have ``scope``, or None."""
    if scope is None or not scope.named:
        return None
    if role is Role.ADMIN:
        return "an admin has no scope: who says what others may could lift it. Choose another role"
    return scope.flaw()


class Rights(NamedTuple):
    role: Role
    scope: PersonScope | None = None  # None: everywhere
    is_vouched: bool = False  # a provider of identities vouches for the person
    is_personal: bool = False  # of a user, who may do at least as much


class ScopedBy(StrEnum):
    """How a route keeps to the scope of its caller. A route without any of these is only for callers whose role counts
    everywhere.
    """

    DAG = "dag"  # its path names a DAG, which must be in the scope
    ANSWER = "answer"  # its statements take the scope
    POOL = "pool"  # its path names a pool
    QUEUE = "queue"  # its path names a queue
    OWN = "own"  # its answer is about the caller alone, or about nothing of a DAG, pool or queue
