"""What runs the workers of a fleet: the little that an autoscaler has to know of it.

A target may be told which workers to end, as a host of workers is, or choose them itself, as a Deployment of Kubernetes does by
costs. So the autoscaler says which workers are meant to go, and looks afterwards which went. Every request to a target may be
repeated: after a crash the next autoscaler repeats the step.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving import scaling
from evenflow.store.serving.scaling import FleetRow


@dataclass(frozen=True, slots=True)
class Replica:
    """``name`` is that of the worker in it. ``leaving``: it was told to end."""

    name: str
    leaving: bool = False
    is_ready: bool = True  # as its target sees it


@dataclass(frozen=True, slots=True)
class Sight:
    """A fleet at one moment. ``replicas`` are all that exist or are to exist, also those that do not run yet; ``size`` is the
    number that there is to be.

    ``order`` has the names of all that stay, in the order in which a target that chooses itself would end them; None: it ends those
    that it is told. While it is not ``is_settled``, it has not yet done what it was told, or does something else. It knows the
    costs of those ``marked``.
    """

    replicas: list[Replica]
    size: int
    is_settled: bool = True
    order: tuple[str, ...] | None = None
    marked: frozenset[str] = frozenset()


class FleetTarget(Protocol):
    """Of one kind. ``conn`` is the autoscaler's; a target that has its state elsewhere has no use for it. Raises
    :class:`UnfitTarget` where it cannot serve a fleet.
    """

    async def sight(self, conn: AsyncConn, fleet: FleetRow) -> Sight: ...

    async def mark(self, fleet: FleetRow, ranks: Mapping[str, int]) -> None:
        """What the end of each costs, as a rank: a target that chooses itself takes these before all others, the lowest first."""

    async def unmark(self, fleet: FleetRow, names: Collection[str]) -> None:
        """No costs are told of these any more; of some there may have been none."""

    async def resize(self, fleet: FleetRow, replicas: int, still_acts: Callable[[], Awaitable[None]], *, again: bool) -> int:
        """Sets the number of workers, beside those that are leaving. Runs in no transaction, because a target elsewhere may be
        slow. A target that others may change awaits ``still_acts`` after it has read what its write depends on: that raises
        :class:`NotActing` or :class:`scaling.FleetGone`, so the late write of an autoscaler that was frozen has no effect. Returns
        the new number. If another client has changed the fleet's number meanwhile, it returns that number and changes nothing.

        ``again``: an earlier attempt may have written another number, and its write may still be on its way. It has no effect once
        this has returned, even if the number is to stay: then the target may set, and return, one more.
        """

    async def write(self, conn: AsyncConn, fleet: FleetRow, replicas: int, leaving: Collection[str]) -> None:
        """What a target keeps in the database of what :meth:`resize` answered: ``conn`` is in the transaction in which the fleet's
        own number is changed. Those that are ``leaving`` are to end: by SIGTERM, and when they have had time for their own drain by
        SIGKILL.
        """

    async def close(self) -> None:
        """What it has opened."""


@dataclass(frozen=True, slots=True)
class UnfitTarget(Exception):
    """A target cannot serve a fleet; ``reason`` is for people."""

    reason: str


class HostTarget:
    """Processes on a host that runs them, native workers or those of Celery: rows say which ones there are to be, and the host
    (``runtime.local_fleet``) starts and ends them. It ends exactly those that it is told to, so it needs no costs.
    """

    async def sight(self, conn: AsyncConn, fleet: FleetRow) -> Sight:
        return Sight([Replica(name, leaving) for name, leaving in await scaling.list_native(conn, fleet.name)], fleet.replicas)

    async def mark(self, fleet: FleetRow, ranks: Mapping[str, int]) -> None: ...

    async def unmark(self, fleet: FleetRow, names: Collection[str]) -> None: ...

    async def resize(self, fleet: FleetRow, replicas: int, still_acts: Callable[[], Awaitable[None]], *, again: bool) -> int:
        return replicas

    async def write(self, conn: AsyncConn, fleet: FleetRow, replicas: int, leaving: Collection[str]) -> None:
        if leaving:
            await scaling.end_native(conn, fleet.name, list(leaving))
        await scaling.add_native(conn, fleet.name, replicas)

    async def close(self) -> None: ...
