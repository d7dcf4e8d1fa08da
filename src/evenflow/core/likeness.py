"""What was meant by a name that is none."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence with a space before it, or nothing where none of the ``known`` is like ``name``."""
    from difflib import get_close_matches

    close = get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def few(names: Iterable[str], most: int = 20) -> str:
    """Names in a row, the first ones of many."""
    listed = list(names)
    return ", ".join(listed[:most]) + (", ..." if len(listed) > most else "")
