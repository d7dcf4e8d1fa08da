"""What was meant by a name that is none."""

from __future__ import annotations

from collections.abc import Iterable

_ALIKE = 0.6  # of 1, among the few names of one kind


def closest(name: str, known: Iterable[str], alike: float = _ALIKE) -> str | None:
    """Of the ``known``, the one most like ``name``, if any is at least so much ``alike``."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known), n=1, cutoff=alike)), None)


def did_you_mean(name: str, known: Iterable[str], alike: float = _ALIKE) -> str:
    """A sentence with a space before it, or nothing where none of the ``known`` is like ``name``."""
    close = closest(name, known, alike)
    return f" Did you mean {close!r}?" if close else ""


def meant_or(name: str, known: Iterable[str], otherwise: str) -> str:
    """The sentence by itself, or what to say where nothing is alike."""
    return did_you_mean(name, known).lstrip() or otherwise


def few(names: Iterable[str], most: int = 20) -> str:
    """Names in a row, the first ones of many."""
    listed = list(names)
    return ", ".join(listed[:most]) + (", ..." if len(listed) > most else "")
