"""The seam: what a launcher needs of a push executor, and what an executor may ask of the launcher.

What is sent is a hint. Who gets it claims the try that it names; a claim is refused when another one has it, or when it is over.
So an executor may lose what it was sent, deliver it twice, or late.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from evenflow.store.db.connect import AsyncPool
from evenflow.store.serving import launches
from evenflow.store.serving.launches import Launch, LaunchedTry


@dataclass(frozen=True, slots=True)
class LaunchFailure:
    """What was sent of a try cannot become anything. ``again``: it is sent again; else its try is lost, as with its worker."""

    reason: str
    again: bool = True


class PushExecutor(Protocol):
    """Methods raise :class:`ExecutorUnavailable` when nothing can be said or done now: it is tried again after a pause."""

    async def launch(self, tries: Sequence[Launch]) -> Mapping[int, LaunchFailure]:
        """Send each; answers failures by epoch. The same try with the same ``sends`` may come twice, after a crash."""

    async def reconcile(self, tries: Sequence[Launch]) -> Mapping[int, LaunchFailure]:
        """Of tries that were sent a while ago and that nobody has claimed: which have failed, by epoch. The others wait on."""

    async def watch(self) -> None:
        """Whatever it looks after by itself, for as long as it is served. One that has nothing waits for ever."""

    async def close(self) -> None:
        """Nothing is asked of it any more. What it was sent stays."""


class LaunchLedger:
    """What the database says of tries, and is told of them, for executors that look after what they run."""

    def __init__(self, pool: AsyncPool) -> None:
        self._pool = pool

    async def current(self, epochs: Collection[int]) -> dict[int, LaunchedTry]:
        """Those whose try waits for a worker or runs."""
        async with self._pool.connection() as conn:
            return await launches.find_current(conn, epochs)

    async def send_again(self, epochs: Collection[int]) -> None:
        """What was sent of these is gone. Those that are claimed are not touched."""
        async with self._pool.connection() as conn:
            await launches.call_back(conn, epochs)

    async def lose(self, reasons: Mapping[int, str], *, claimed: bool = False) -> set[int]:
        """Tries, by epoch, are lost for a reason: they begin anew, as often as that may be. Only those that nobody has, unless
        ``claimed``: then whatever runs them must have ended. Answers whose loss was written down.
        """
        async with self._pool.connection() as conn:
            return await launches.report_lost(conn, reasons, claimed=claimed)
