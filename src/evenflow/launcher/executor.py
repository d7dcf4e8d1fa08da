"""The seam: what a launcher needs from a push executor, and what an executor may ask of the launcher.

A message is a hint. Its receiver claims the named try; the claim is refused when another worker has the try, or it is over. So an
executor may lose messages, deliver them twice, or late.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from evenflow.core.meter import Meter
from evenflow.core.pods.ends import WaitingPod
from evenflow.store.db.connect import AsyncPool
from evenflow.store.serving import launches
from evenflow.store.serving.launches import Launch, LaunchedCode, LaunchedTry, PodAsk


@dataclass(frozen=True, slots=True)
class LaunchFailure:
    """The message for a try cannot succeed. ``again``: it is sent again; otherwise the try is lost, as with its worker. ``alone``:
    the executor takes others meanwhile, and this one is sent again after a pause of its own.
    """

    reason: str
    again: bool = True
    alone: bool = False


class PushExecutor(Protocol):
    """Methods raise :class:`ExecutorUnavailable` when they can say or do nothing now: the launcher tries again after a pause."""

    async def launch(self, tries: Sequence[Launch]) -> Mapping[int, LaunchFailure]:
        """Sends each; returns failures by epoch. After a crash, the same try with the same ``sends`` may come twice."""

    async def reconcile(self, tries: Sequence[Launch]) -> Mapping[int, LaunchFailure]:
        """Returns which of these tries, sent a while ago and not claimed, have failed, by epoch. The others keep waiting."""

    @property
    def waiting(self) -> Mapping[int, WaitingPod]:
        """What is known, without asking, of tries that were sent and not claimed, by epoch: some of them, or none."""

    async def watch(self) -> None:
        """Does the executor's own upkeep while it is served. An executor without any waits for ever."""

    async def close(self) -> None:
        """Called when the executor is no longer used. Its messages stay."""


class LaunchLedger:
    """The database's knowledge of tries, and reports to it, for executors that look after their tries. ``meter`` is the
    launcher's.
    """

    def __init__(self, pool: AsyncPool, meter: Meter) -> None:
        self._pool, self.meter = pool, meter

    async def current(self, epochs: Collection[int]) -> dict[int, LaunchedTry]:
        """Returns those whose try waits for a worker or runs."""
        async with self._pool.connection() as conn:
            return await launches.find_current(conn, epochs)

    async def send_again(self, epochs: Collection[int]) -> None:
        """Has these sent again, because their message or pod is gone. Claimed ones are not touched."""
        async with self._pool.connection() as conn:
            await launches.call_back(conn, epochs)

    async def end(self, reasons: Mapping[int, str], *, failed: bool = False, claimed: bool = False) -> set[int]:
        """Ends tries, by epoch, with a reason: as lost, so that they begin anew as often as allowed, or as ``failed``. It ends only
        unclaimed tries, unless ``claimed``: then the caller knows that their processes have ended. Returns the epochs whose end was
        stored.
        """
        async with self._pool.connection() as conn:
            return await launches.report_ends(conn, reasons, failed=failed, claimed=claimed)

    async def note_ends_of_workers(self, reasons: Mapping[int, str]) -> None:
        """Stores what is known of the ends of these tries' workers: the reason of their loss when their leases are over."""
        async with self._pool.connection() as conn:
            await launches.note_ends_of_workers(conn, reasons)

    async def pods(self, epochs: Collection[int]) -> dict[int, PodAsk]:
        """Returns the pod options of those tasks that have any."""
        async with self._pool.connection() as conn:
            return await launches.read_pods(conn, epochs)

    async def codes(self, epochs: Collection[int]) -> dict[int, LaunchedCode]:
        """Returns where the code of these tries is."""
        async with self._pool.connection() as conn:
            return await launches.read_codes(conn, epochs)


class TryTokens(Protocol):
    """Tokens for workers of single tries."""

    async def installation(self) -> str:
        """Returns the name of the tokens' Evenflow."""

    async def for_worker_of(self, epoch: int, queue: str, name: str) -> str:
        """Returns a token with which a worker of this name may register that claims this one try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesSettings:
    """``environment`` is for workers in pods, unless the template says otherwise. ``url_here``: where the API is for what is in the
    network of this host.
    """

    cluster: str
    template: str
    tokens: TryTokens
    environment: Mapping[str, str] = field(default_factory=dict)
    url_here: str = ""
