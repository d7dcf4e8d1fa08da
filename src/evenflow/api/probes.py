"""What probes are told of the system. Many ask, and often, so asking costs the database next to nothing."""

from __future__ import annotations

from dataclasses import dataclass

from evenflow.api import limits
from evenflow.api.kept import SharedReading
from evenflow.core.limits import LEASE_S
from evenflow.core.service import missing_kinds
from evenflow.errors import DatabaseUnavailable
from evenflow.store.db.connect import AsyncPool, Row
from evenflow.store.serving import metrics, views


@dataclass(frozen=True, slots=True)
class SystemState:
    services: list[Row]  # as :func:`evenflow.store.serving.views.list_services`
    triggers: int  # that wait for a triggerer, or that one has

    @property
    def youngest(self) -> list[Row]:
        """Of each kind and name the last to register."""
        return list({(row["kind"], row["name"]): row for row in self.services}.values())

    @property
    def missing(self) -> list[str]:
        """Kinds of service that are needed, and of which none is healthy."""
        return missing_kinds((row["kind"] for row in self.youngest if row["healthy"]), triggers=self.triggers)


class Probes:
    """``pool`` is for nothing that anyone waits for who has a token."""

    def __init__(self, pool: AsyncPool) -> None:
        self._pool = pool
        self._kept = SharedReading(self._read, kept_s=limits.PROBES_KEPT, at_most_s=limits.PROBE)

    async def look(self) -> SystemState:
        """Not older than ``limits.PROBES_KEPT``. Raises the database's errors."""
        try:
            return await self._kept.get()
        except TimeoutError:
            raise DatabaseUnavailable(f"The database does not answer within {limits.PROBE:g} s.") from None

    async def _read(self) -> SystemState:
        async with self._pool.connection() as conn:
            services = await views.list_services(conn, lease_s=LEASE_S, limit=limits.STATUS_SERVICES)
            triggers = await metrics.count_triggers(conn)
        return SystemState(services, triggers.waiting + triggers.running)
