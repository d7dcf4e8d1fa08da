"""The connection of a running try to its worker: for its questions, and for texts to mask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol


class Outside(Protocol):
    """The connection of a running try to its worker."""

    def ask(self, question: str, arguments: dict[str, Any]) -> dict[str, Any]: ...


_outside: Outside | None = None  # of the one try of this process, including its threads
_secrets: set[str] = set()  # texts that the worker knows, or will know once there is a try


def way() -> Outside | None:
    """Returns the running try's connection to the control plane; None while a file is loaded."""
    return _outside


@contextmanager
def reaching(through: Outside) -> Iterator[None]:
    """Inside, lookups that fail here continue through this connection."""
    global _outside
    before, _outside = _outside, through
    try:
        if _secrets:
            through.ask("mask", {"values": sorted(_secrets)})
        yield
    finally:
        _outside = before


def hide(values: Iterable[str]) -> None:
    """Tells the worker to mask these in everything that the try shows; without a try yet, when it begins."""
    new = set(values) - _secrets
    _secrets.update(new)
    if new and _outside is not None:
        _outside.ask("mask", {"values": sorted(new)})


def hidden() -> frozenset[str]:
    """Returns the texts that :func:`hide` got in this process."""
    return frozenset(_secrets)
