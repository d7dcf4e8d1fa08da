"""The way of a running try to its worker: what it asks for there, and what it has masked there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol


class Outside(Protocol):
    """The way of a running try to its worker."""

    def ask(self, question: str, arguments: dict[str, Any]) -> dict[str, Any]: ...


_outside: Outside | None = None  # of the one try that this process runs; its threads use it too
_secrets: set[str] = set()  # that the worker has been told of, or will be when there is a try


def way() -> Outside | None:
    """The running try's way to the control plane; None while a file is loaded."""
    return _outside


@contextmanager
def reaching(through: Outside) -> Iterator[None]:
    """While it lasts, what is not found here is asked for there."""
    global _outside
    before, _outside = _outside, through
    try:
        if _secrets:
            through.ask("mask", {"values": sorted(_secrets)})
        yield
    finally:
        _outside = before


def hide(values: Iterable[str]) -> None:
    """Tells the worker to mask these in all that the try shows; before there is a try, when it begins."""
    new = set(values) - _secrets
    _secrets.update(new)
    if new and _outside is not None:
        _outside.ask("mask", {"values": sorted(new)})


def hidden() -> frozenset[str]:
    """What :func:`hide` was told in this process."""
    return frozenset(_secrets)
