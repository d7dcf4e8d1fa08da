"""The rows that go before and after each thing that an autoscaler does with a fleet."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from evenflow.autoscaler.limits import LEAVING_S
from evenflow.autoscaler.target import FleetTarget
from evenflow.killpoints import KillPoint, reached
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving import scaling
from evenflow.store.serving.scaling import FleetRow, StepRow


@dataclass(frozen=True, slots=True)
class StepLog:
    """Of one fleet. Each of these is a transaction of the autoscaler with the service id ``holder``, if it still acts: else it
    raises :class:`NotActing`, and :class:`scaling.FleetGone` if the fleet was deleted.
    """

    conn: AsyncConn
    holder: int
    fleet: FleetRow

    async def begin(self, step: str, detail: Mapping[str, Any], plan: int | None = None) -> StepRow:
        """A step is about to be done; without a ``plan`` it is the first of a new one."""
        async with scaling.acting(self.conn, self.holder, plan):
            if plan is None:
                begun = await scaling.begin_plan(self.conn, self.fleet.name, step, detail)
            else:
                begun = await scaling.begin_step(self.conn, self.fleet.name, plan, step, detail)
        reached(KillPoint.STEP_BEGUN)
        return begun

    async def resize(
        self, target: FleetTarget, plan: int, replicas: int, leaving: Collection[str] = (), *, again: bool = False
    ) -> int:
        """Sets the number of workers beside those that are leaving, which fences of ``plan`` keep from taking tries. No transaction
        is open while the target is told, which may take long; the outcome is written if this autoscaler still acts then. Returns
        the new number. ``again``: an earlier attempt was begun, with whatever number.
        """

        async def still_acts() -> None:
            async with scaling.acting(self.conn, self.holder, plan):
                pass

        set_to = await target.resize(self.fleet, replicas, still_acts, again=again)
        reached(KillPoint.STEP_TOLD)
        async with scaling.acting(self.conn, self.holder, plan):
            await scaling.renew_fences(self.conn, plan, for_s=LEAVING_S)
            await target.write(self.conn, self.fleet, set_to, leaving)
            await scaling.set_replicas(self.conn, self.fleet.name, set_to)
        await scaling.wake_hosts(self.conn)
        return set_to

    async def note(self, step: StepRow, detail: Mapping[str, Any]) -> None:
        """It is done, and this came of it."""
        reached(KillPoint.STEP_TAKEN)
        async with scaling.acting(self.conn, self.holder, step.plan):
            await scaling.finish_step(self.conn, step, detail)
        reached(KillPoint.STEP_NOTED)

    async def close(self, plan: int) -> None:
        async with scaling.acting(self.conn, self.holder, plan):
            await scaling.close_plan(self.conn, plan)
