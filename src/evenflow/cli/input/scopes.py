"""Options for the scope of a role."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import PersonScope, flaw_of_rights
from evenflow.errors import BadValue

Tags = Annotated[list[str] | None, Parameter(name="--tag", negative=(), help="Only DAGs with this tag; once for each.")]
Bundles = Annotated[list[str] | None, Parameter(name="--bundle", negative=(), help="Only DAGs of this bundle; once for each.")]
Pools = Annotated[list[str] | None, Parameter(name="--pool", negative=(), help="Only this pool; once for each. Else all.")]
Queues = Annotated[list[str] | None, Parameter(name="--queue", negative=(), help="Only this queue; once for each. Else all.")]
ScopedNames = Sequence[str] | None


def checked_scope(
    role: Role | None, tags: ScopedNames, bundles: ScopedNames, pools: ScopedNames, queues: ScopedNames
) -> PersonScope:
    """Raises :class:`BadValue` for invalid names, and for a ``role`` that counts everywhere."""
    scope = PersonScope(tags=tuple(tags or ()), bundles=tuple(bundles or ()), pools=tuple(pools or ()), queues=tuple(queues or ()))
    flaw = scope.flaw() if role is None else flaw_of_rights(role, scope)
    if flaw is not None:
        raise BadValue(f"{flaw[0].upper()}{flaw[1:]}.")
    return scope
