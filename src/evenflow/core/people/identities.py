"""Logins without passwords: a provider of identities (OpenID Connect), and the rights of its groups."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import PersonScope, Rights, flaw_of_rights

_SCOPE = tuple(kind.name for kind in fields(PersonScope))


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityProvider:
    """``groups`` has the rights of each group; ``url`` is the address of this Evenflow for browsers."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    url: str
    name_claim: str = "preferred_username"
    groups_claim: str = "groups"
    groups: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, text: str) -> IdentityProvider | None:
        return cls(**json.loads(text)) if text else None

    def to_json(self) -> str:
        """The inverse of :meth:`from_json`."""
        return json.dumps(asdict(self))

    def rights_of(self, groups: Collection[str]) -> Rights | None:
        """Returns the highest role among these groups, with all scopes that give it, or None: no group may log in."""
        found = [rights_from(self.groups[group]) for group in groups if group in self.groups]
        if not found:
            return None
        role = max((rights.role for rights in found), key=list(Role).index)
        scopes = [rights.scope for rights in found if rights.role is role]
        known = [scope for scope in scopes if scope is not None]
        return Rights(role, _together(known) if len(known) == len(scopes) else None)


def _together(scopes: Collection[PersonScope]) -> PersonScope:
    """Returns a scope that contains each of these."""

    def names(kind: str, *, are_limited: bool) -> tuple[str, ...]:
        return tuple(sorted({name for scope in scopes for name in getattr(scope, kind)})) if are_limited else ()

    of_dags = all(scope.tags or scope.bundles for scope in scopes)
    together = PersonScope(
        tags=names("tags", are_limited=of_dags),
        bundles=names("bundles", are_limited=of_dags),
        pools=names("pools", are_limited=all(scope.pools for scope in scopes)),
        queues=names("queues", are_limited=all(scope.queues for scope in scopes)),
    )
    # Each scope is limited, so their union is limited, too: if it had no limit left, it keeps each name in them.
    return together if together.named else PersonScope(**{kind: names(kind, are_limited=True) for kind in _SCOPE})


def rights_from(told: Any) -> Rights:
    """Reads ``operator``, or ``{"role": "operator", "tags": ["etl"]}``. Raises :class:`ValueError`, which says what to write."""
    if isinstance(told, str):
        told = {"role": told}
    if not isinstance(told, Mapping) or not told.keys() <= {"role", *_SCOPE} or told.get("role") not in list(Role):
        roles = ", ".join(Role)
        raise ValueError(
            f'a group has a role ({roles}), and where it counts: {{"role": "author", "tags": ["etl"]}}, not {told!r:.200}'
        )
    role, scope = Role(told["role"]), PersonScope.read({kind: told[kind] for kind in _SCOPE if told.get(kind)})
    if (flaw := flaw_of_rights(role, scope)) is not None:
        raise ValueError(flaw)
    return Rights(role, scope)
