"""Conditions over assets: when has a DAG that waits for assets seen enough of them?

A condition is plain JSON, as in the spec: the name of an asset, ``{"alias": name}``, ``{"all": [condition, ...]}`` or
``{"any": [condition, ...]}``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from evenflow.errors import BadSchedule

DEEPEST = 20  # levels of a condition; a deeper one is not readable


class Leaf(NamedTuple):
    """What a condition names: an asset, or an alias that stands for the assets that tasks add to it when they run."""

    name: str
    is_alias: bool = False


def satisfied(condition: Any, seen: Collection[Leaf]) -> bool:
    """Returns whether ``condition`` holds when each of ``seen`` has an event."""
    match condition:
        case {"all": parts}:
            return all(satisfied(part, seen) for part in parts)
        case {"any": parts}:
            return any(satisfied(part, seen) for part in parts)
        case _:
            return leaf_of(condition) in seen


def leaves(condition: Any, level: int = 0) -> Iterator[Leaf]:
    """Yields every name in the condition, in order. Raises :class:`BadSchedule` for anything that is not a condition."""
    if level > DEEPEST:
        raise BadSchedule(f"A condition over assets is nested more than {DEEPEST} levels deep.")
    match condition:
        case {"all": [_, *_] as parts} | {"any": [_, *_] as parts}:
            for part in parts:
                yield from leaves(part, level + 1)
        case _:
            yield leaf_of(condition)


def leaf_of(condition: Any) -> Leaf:
    match condition:
        case str() as name:
            return Leaf(name)
        case {"alias": str() as name}:
            return Leaf(name, is_alias=True)
        case _:
            raise BadSchedule(f"This is no condition over assets: {condition!r:.200}.")
