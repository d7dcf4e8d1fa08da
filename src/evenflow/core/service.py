"""The one lifecycle of everything that runs for long: start, ready, drain, stop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

NEEDED = ("api", "scheduler", "processor", "worker")  # kinds of service without one of which nothing goes on


def missing_kinds(healthy: Iterable[str], *, triggers: int) -> list[str]:
    """Kinds of service that are needed and of which none is among the ``healthy`` ones. ``triggers``, of deferred tasks that a
    triggerer is to look after, need one.
    """
    there = set(healthy)
    return [kind for kind in (*NEEDED, *(("triggerer",) if triggers else ())) if kind not in there]


class Service(Protocol):
    """A long-running part of Evenflow, hosted by ``runtime.lifecycle``.

    ``start`` returns when the service is ready to do its work, or raises an :class:`EvenflowError`. ``drain`` stops taking new
    work and returns when all work in hand is done. ``stop`` ends it now, leaving nothing behind that another process could not
    pick up; it is called exactly once after ``start``, with or without a ``drain`` before. ``failed`` returns when the service
    cannot go on by itself, with the reason; while all is well it waits.
    """

    name: str

    async def start(self) -> None: ...

    async def drain(self) -> None: ...

    async def stop(self) -> None: ...

    async def failed(self) -> BaseException: ...
