"""Answers probes about the system. Probes are frequent, so an answer costs the database next to nothing."""

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
    services: list[Row]  # rows of :func:`evenflow.store.serving.views.list_services`
    triggers: int  # triggers that wait for a triggerer, or have one

    @property
    def youngest(self) -> list[Row]:
        """The last service to register, for each kind and name."""
        return list({(row["kind"], row["name"]): row for row in self.services}.values())

    @property
    def missing(self) -> list[str]:
        """Kinds of service that are needed and have no healthy instance."""
        return missing_kinds((row["kind"] for row in self.youngest if row["healthy"]), triggers=self.triggers)


class Probes:
    """``pool`` has connections for health checks and scrapes only: requests without a token never delay requests with one."""

    def __init__(self, pool: AsyncPool) -> None:
        self._pool = pool
        self._kept = SharedReading(self._read, kept_s=limits.PROBES_KEPT, at_most_s=limits.PROBE)

    async def look(self) -> SystemState:
        """Returns a state that is at most ``limits.PROBES_KEPT`` old. Raises the database's errors."""
        try:
            return await self._kept.get()
        except TimeoutError:
            raise DatabaseUnavailable(f"The database does not answer within {limits.PROBE:g} s.") from None

    async def _read(self) -> SystemState:
        async with self._pool.connection() as conn:
            services = await views.list_services(conn, lease_s=LEASE_S, limit=limits.STATUS_SERVICES)
            triggers = await metrics.count_triggers(conn)
        return SystemState(services, triggers.waiting + triggers.running)
