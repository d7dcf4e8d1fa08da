"""Finds the name that was meant by a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable

_ALIKE = 0.6  # of 1, among the few names of one kind


def closest(name: str, known: Iterable[str], alike: float = _ALIKE) -> str | None:
    """Returns the name in ``known`` that is most like ``name``, if its likeness is at least ``alike``."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known), n=1, cutoff=alike)), None)


def did_you_mean(name: str, known: Iterable[str], alike: float = _ALIKE) -> str:
    """Returns a sentence with a space before it, or an empty text where none of the ``known`` is like ``name``."""
    close = closest(name, known, alike)
    return f" Did you mean {close!r}?" if close else ""


def meant_or(name: str, known: Iterable[str], otherwise: str) -> str:
    """Returns the sentence by itself, or ``otherwise`` where no name is like it."""
    return did_you_mean(name, known).lstrip() or otherwise


def few(names: Iterable[str], most: int = 20) -> str:
    """Returns the names in a row, cut after the first ``most``."""
    listed = list(names)
    return ", ".join(listed[:most]) + (", ..." if len(listed) > most else "")
