"""Which values can be stored as JSON and read by every reader.

Readers of JSON descend level by level, and their stacks have different limits. A value that one reader has stored could keep
another from showing a list, or from answering a worker. So this module limits the depth of values, far above what people write and
far below any reader's stack.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Any

from evenflow.core.limits import MAX_JSON_DEPTH


def flaw_of(value: Any, levels: int = MAX_JSON_DEPTH) -> str | None:
    """Returns why a value cannot be stored, as the end of a sentence about it, or None. It searches breadth first, so no depth is
    too much here.
    """
    level: list[Any] = [value]
    for _ in range(levels):
        if (flaw := next(filter(None, map(_flaw_of_one, level)), None)) is not None:
            return flaw
        level = [part for item in level for part in _parts(item)]
        if not level:
            return None
    return f"is nested more than {levels} levels deep"


def _flaw_of_one(item: Any) -> str | None:
    if isinstance(item, float) and not isfinite(item):
        return f"holds {item}, which is no number of JSON"
    if isinstance(item, str) and not item.isascii():
        try:
            item.encode()
        except UnicodeEncodeError:
            return "holds half a character (a lone surrogate)"
    return None


def _parts(item: Any) -> Iterable[Any]:
    match item:
        case dict():
            return (*item, *item.values())
        case list() | tuple():
            return item
        case _:
            return ()
