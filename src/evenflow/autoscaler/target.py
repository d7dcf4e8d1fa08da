"""What runs the workers of a fleet: the little that an autoscaler has to know of it.

A target may be told whom to end, as a host of native workers, or choose itself, as a Deployment of Kubernetes does by costs that
it is told. So :meth:`FleetTarget.resize` names those that are meant to go, and afterwards it is looked who went. All that a target
does it may be told twice: who comes after a crash does the step again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from evenflow.store.db.connect import Conn
from evenflow.store.serving import scaling
from evenflow.store.serving.scaling import FleetRow


@dataclass(frozen=True, slots=True)
class Replica:
    """``name`` is that of the worker in it. ``leaving``: it was told to end."""

    name: str
    leaving: bool = False


class FleetTarget(Protocol):
    """Of one kind. ``conn`` is the autoscaler's; a target that has its state elsewhere has no use for it."""

    async def replicas(self, conn: Conn, fleet: FleetRow) -> list[Replica]:
        """All that there are or are to be, also those that do not run yet."""

    async def mark(self, fleet: FleetRow, ranks: Mapping[str, int]) -> None:
        """What the end of each costs, as a rank: a target that chooses itself takes the lowest first."""

    async def unmark(self, fleet: FleetRow, names: Collection[str]) -> None:
        """No costs are told of these any more; of some there may have been none."""

    async def resize(self, conn: Conn, fleet: FleetRow, replicas: int, leaving: Collection[str]) -> None:
        """There are to be so many beside those that are ``leaving``, which are to end: by SIGTERM, and when they have had time for
        their own drain by SIGKILL. ``conn`` is in a transaction, in which the fleet's own number is changed, too.
        """


@dataclass(frozen=True, slots=True)
class UnfitTarget(Exception):
    """A target cannot serve a fleet; ``reason`` is for people."""

    reason: str


class NativeTarget:
    """Processes on a host that runs them: rows say which there are to be, and the host (``runtime.native``) makes it so. It ends
    just those that it is told to, so it needs no costs.
    """

    async def replicas(self, conn: Conn, fleet: FleetRow) -> list[Replica]:
        return [Replica(name, leaving) for name, leaving in await scaling.list_native(conn, fleet.name)]

    async def mark(self, fleet: FleetRow, ranks: Mapping[str, int]) -> None: ...

    async def unmark(self, fleet: FleetRow, names: Collection[str]) -> None: ...

    async def resize(self, conn: Conn, fleet: FleetRow, replicas: int, leaving: Collection[str]) -> None:
        if leaving:
            await scaling.end_native(conn, fleet.name, list(leaving))
        await scaling.add_native(conn, fleet.name, replicas)
