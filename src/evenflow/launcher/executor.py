"""The seam: what a launcher needs of a push executor, and what an executor may ask of the launcher.

What is sent is a hint. Who gets it claims the try that it names; a claim is refused when another one has it, or when it is over.
So an executor may lose what it was sent, deliver it twice, or late.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from evenflow.core.meter import Meter
from evenflow.store.db.connect import AsyncPool
from evenflow.store.serving import launches
from evenflow.store.serving.launches import Launch, LaunchedTry, PodAsk


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
    """What the database says of tries, and is told of them, for executors that look after what they run. ``meter`` is the
    launcher's.
    """

    def __init__(self, pool: AsyncPool, meter: Meter) -> None:
        self._pool, self.meter = pool, meter

    async def current(self, epochs: Collection[int]) -> dict[int, LaunchedTry]:
        """Those whose try waits for a worker or runs."""
        async with self._pool.connection() as conn:
            return await launches.find_current(conn, epochs)

    async def send_again(self, epochs: Collection[int]) -> None:
        """What was sent of these is gone. Those that are claimed are not touched."""
        async with self._pool.connection() as conn:
            await launches.call_back(conn, epochs)

    async def end(self, reasons: Mapping[int, str], *, failed: bool = False, claimed: bool = False) -> set[int]:
        """Tries, by epoch, are lost for a reason: they begin anew, as often as that may be; or they have ``failed``. Only those
        that nobody has, unless ``claimed``: then whatever runs them must have ended. Answers whose end was written down.
        """
        async with self._pool.connection() as conn:
            return await launches.report_ends(conn, reasons, failed=failed, claimed=claimed)

    async def note_ends_of_workers(self, reasons: Mapping[int, str]) -> None:
        """What is known of the end of the workers that have these tries: the reason of their loss when their leases are over."""
        async with self._pool.connection() as conn:
            await launches.note_ends_of_workers(conn, reasons)

    async def pods(self, epochs: Collection[int]) -> dict[int, PodAsk]:
        """What their tasks say of their pods, of those that say something."""
        async with self._pool.connection() as conn:
            return await launches.read_pods(conn, epochs)


class TryTokens(Protocol):
    """Tokens for the workers of one try each."""

    async def installation(self) -> str:
        """The name of the Evenflow that they are of."""

    async def for_worker_of(self, epoch: int, queue: str) -> str:
        """With it a worker may register that claims this one try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesSettings:
    """``environment`` is what workers in pods have to know, unless the template says else."""

    cluster: str
    template: str
    tokens: TryTokens
    environment: Mapping[str, str] = field(default_factory=dict)
