"""The one lifecycle of everything that runs for long: start, ready, drain, stop."""

from __future__ import annotations

from typing import Protocol

NEEDED = ("api", "scheduler", "processor", "worker")  # kinds of service without one of which nothing goes on


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
