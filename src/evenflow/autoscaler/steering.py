"""One loop over all fleets: it finishes what was begun, looks at what is there, and begins what follows."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from evenflow.autoscaler import observations as seen
from evenflow.autoscaler.fleet_view import Demand, FleetView, candidates, view
from evenflow.autoscaler.forecasting import Forecasting
from evenflow.autoscaler.limits import AWAY_S, FOLLOW_S, FOLLOWED_S, FORGET_S, HURRY_S, KEPT_S, LOOP_S, PLANS, RECORD_S
from evenflow.autoscaler.shrinking import Shrinking, ShrinkPlan, names_counted, names_going, split, told_of, why
from evenflow.autoscaler.steps import StepLog
from evenflow.autoscaler.target import FleetTarget, Sight, UnfitTarget
from evenflow.core.meter import Meter
from evenflow.core.scaling.choosing import Candidate, choose
from evenflow.core.scaling.plan_steps import GROW, RESIZE
from evenflow.core.scaling.sizing import GAP_S, LoadHistory, Look, Sizing, decide
from evenflow.errors import ClusterRefused, ClusterUnavailable, NotActing
from evenflow.explaining.fleet_costs import worker_costs
from evenflow.store.db.connect import AsyncConn
from evenflow.store.db.failures import OUTAGES
from evenflow.store.serving import scaling
from evenflow.store.serving.scaling import FleetGone, FleetRow, StepRow
from evenflow.telemetry.observing import observe

ELSEWHERE = ("kubernetes",)  # targets that answer over a network


@dataclass(slots=True)
class FleetMemory:
    """What is remembered of a fleet from loop to loop. The next autoscaler reads it from what was kept."""

    fleet: FleetRow
    history: LoadHistory = field(default_factory=LoadHistory)
    kept_at: float = 0.0
    forgot_at: float = 0.0
    look: Look | None = None
    refused: str = ""
    again_at: float = 0.0  # not before, by the monotonic clock, as its target cannot be reached


class Steering:
    """``holder`` is the service id of the autoscaler, ``targets`` are by their kind."""

    def __init__(self, holder: int, targets: Mapping[str, FleetTarget], meter: Meter) -> None:
        self._holder, self._targets, self._meter = holder, targets, meter
        self.memories: dict[str, FleetMemory] = {}
        self._acts = False
        self._looked_s = 0.0
        self.rest_s = LOOP_S  # from the begin of one loop to that of the next
        self._forecasting = Forecasting()

    async def loop(self, conn: AsyncConn) -> bool:
        """Whether this autoscaler acts."""
        now = await scaling.take_lease(conn, self._holder)
        if now is None:
            self._act_no_more()
            self.rest_s = min(LOOP_S, max(await scaling.lease_left_s(conn), HURRY_S))  # the next one takes over as soon as it may
            return False
        self.rest_s = LOOP_S
        if not self._acts:
            observe(seen.acts())
            self._acts = True
        try:
            await self._look_after_all(conn, now)
        except NotActing:
            self._act_no_more()
        return self._acts

    def _act_no_more(self) -> None:
        """Another autoscaler acts: it is told once, and nothing is remembered."""
        if self._acts:
            observe(seen.acts_no_more())
        self._acts = False
        self.memories.clear()

    async def _look_after_all(self, conn: AsyncConn, now: float) -> None:
        """Raises :class:`NotActing` when another autoscaler acts by now."""
        fleets = sorted(await scaling.list_fleets(conn), key=lambda fleet: fleet.target in ELSEWHERE)  # a host is never slow
        for gone in self.memories.keys() - {fleet.name for fleet in fleets}:
            await self._leave(conn, self.memories.pop(gone).fleet)
        began = time.perf_counter()
        demand = await Demand.read(conn, now, fleets, self._forecasting)
        self._looked_s = time.perf_counter() - began
        for fleet in fleets:
            try:
                await self._steer(conn, demand, fleet)
            except (NotActing, *OUTAGES):
                raise
            except FleetGone:
                self.memories.pop(fleet.name, None)
                await self._leave(conn, fleet)
            except UnfitTarget as refused:
                self._refused(fleet, refused.reason)
            except ClusterRefused as error:
                await self._away(conn, demand, [fleet], str(error))
            except ClusterUnavailable as error:
                await self._away(conn, demand, [each for each in fleets if each.target == fleet.target], str(error))
            except Exception as error:
                observe(seen.fleet_failed(fleet.name, error), self._meter)
                memory = self.memories.setdefault(fleet.name, FleetMemory(fleet))
                memory.refused = f"its autoscaler failed ({type(error).__name__}), and its log says more"
        await self._clear_fences(conn)

    @property
    def waits_for_the_first(self) -> bool:
        """Whether some fleet has no worker that takes tries, so that what comes is looked at at once (R-AS7)."""
        return any(memory.look is not None and not memory.look.ready for memory in self.memories.values())

    @property
    def refused(self) -> dict[str, str]:
        """Why fleets cannot be looked after now, by their names."""
        return {name: memory.refused for name, memory in self.memories.items() if memory.refused}

    async def _leave(self, conn: AsyncConn, fleet: FleetRow) -> None:
        """A fleet that was deleted has no costs on its pods any more, if its cluster answers now. Its workers stay as they are."""
        observe(seen.fleet_gone(fleet.name))
        target = self._targets.get(fleet.target)
        if target is None:
            return
        try:
            await self._unmark_strays(target, fleet, await target.sight(conn, fleet), [])
        except (UnfitTarget, ClusterRefused, ClusterUnavailable) as error:
            observe(seen.fleet_refused(fleet.name, str(error)))
        except OUTAGES:
            raise
        except Exception as error:  # it is left once, and the others are looked after all the same
            observe(seen.fleet_failed(fleet.name, error), self._meter)

    async def _away(self, conn: AsyncConn, demand: Demand, fleets: Iterable[FleetRow], reason: str) -> None:
        """The rest of this loop does not wait for these, nor do the next ones."""
        for fleet in fleets:
            await self._remembered(conn, fleet, demand.at)
            self._refused(fleet, reason).again_at = time.monotonic() + AWAY_S

    def _refused(self, fleet: FleetRow, reason: str) -> FleetMemory:
        """It is told once, and counted each time."""
        observe(seen.not_looked_after(fleet.name), self._meter)
        memory = self.memories.setdefault(fleet.name, FleetMemory(fleet))
        if memory.refused != reason:
            observe(seen.fleet_refused(fleet.name, reason))
        memory.refused = reason
        return memory

    async def _steer(self, conn: AsyncConn, demand: Demand, fleet: FleetRow) -> None:
        target = self._targets.get(fleet.target)
        if target is None:
            raise UnfitTarget(f"Fleet {fleet.name!r} has target {fleet.target!r}, which this autoscaler does not know.")
        memory = await self._remembered(conn, fleet, demand.at)
        if time.monotonic() < memory.again_at:
            return
        plans, fleet, sight = await self._carry_on(conn, fleet, target, demand.at)
        if any(plan.waits_for_target and demand.at - plan.last.at < FOLLOWED_S for plan in plans):
            self.rest_s = FOLLOW_S
        began = time.perf_counter()
        memory.refused = ""
        await self._unmark_strays(target, fleet, sight, plans)
        sighted = view(demand, fleet, sight.replicas, names_going(plans), names_counted(plans))
        memory.look = sighted.look
        sighted = await self._retire(conn, sighted, target, plans)
        memory.history.add(sighted.look, sighted.policy)
        sizing = decide(memory.history, sighted.policy)
        if sighted.other_slots:
            sizing = replace(sizing, reason=f"{sizing.reason}; {sighted.other_slots}")
        observe(seen.decided(self._looked_s + time.perf_counter() - began), self._meter)
        by = sizing.replicas - sighted.look.replicas
        if by or sighted.look.at - memory.kept_at >= RECORD_S:
            memory.kept_at = sighted.look.at
            async with scaling.acting(conn, self._holder):
                await scaling.record_look(conn, fleet.name, sighted.look, sizing)
        if sighted.look.at - memory.forgot_at >= FORGET_S:
            memory.forgot_at = sighted.look.at
            await scaling.forget_looks(conn, fleet.name, kept_s=KEPT_S)
        if by > 0:
            await self._grow(conn, sighted, target, plans, by, sizing)
        elif by < 0:
            by = -await self._shrink(conn, sighted, target, plans, -by, sizing)
        if by:
            memory.history.moved(sighted.look.at, by)

    async def _remembered(self, conn: AsyncConn, fleet: FleetRow, now: float) -> FleetMemory:
        memory = self.memories.get(fleet.name)
        if memory is None:
            memory = self.memories[fleet.name] = FleetMemory(fleet)
            policy = fleet.rule
            since = now - max(policy.up_after, policy.down_after) - GAP_S
            rows = await scaling.list_looks(conn, fleet.name, since=since, limit=10_000)
            for row in reversed(rows):
                memory.history.add(Look(**{name: row[name] for name in row if name not in ("place", "asked", "reason")}), policy)
        memory.fleet = fleet
        return memory

    async def _unmark_strays(self, target: FleetTarget, fleet: FleetRow, sight: Sight, plans: list[ShrinkPlan]) -> None:
        """Of plans that have ended without a word, as people deleted their fleet and made it again."""
        if strays := sorted(sight.marked - names_going(plans)):
            observe(seen.marks_cleared(fleet.name, ", ".join(strays)))
            await target.unmark(fleet, strays)

    async def _adopt(self, conn: AsyncConn, fleet: FleetRow, sight: Sight) -> FleetRow:
        """Continues from a number that another client has set."""
        if sight.size == fleet.replicas:
            return fleet
        observe(seen.fleet_adopted(fleet.name, fleet.replicas, sight.size))
        async with scaling.acting(conn, self._holder):
            await scaling.set_replicas(conn, fleet.name, sight.size)
        return fleet._replace(replicas=sight.size)

    async def _carry_on(
        self, conn: AsyncConn, fleet: FleetRow, target: FleetTarget, now: float
    ) -> tuple[list[ShrinkPlan], FleetRow, Sight]:
        """Returns the plans that are still under way, and the fleet as it is then. A number that an autoscaler was about to set
        when it died does not count as set by another client.
        """
        plans = []
        opened = await scaling.read_open(conn, fleet.name)
        sight = await target.sight(conn, fleet)
        if not any(steps[-1].step in (GROW, RESIZE) and not steps[-1].done for steps in opened.values()):
            fleet = await self._adopt(conn, fleet, sight)
        for steps in opened.values():
            if steps[0].step == GROW:
                await self._finish_growth(conn, fleet, target, steps[0])
            else:
                plan = ShrinkPlan(steps)
                if not await Shrinking(conn, self._holder, fleet, target, now).carry_on(plan):
                    plans.append(plan)
            fleet = await scaling.read_fleet(conn, fleet.name)
        return plans, fleet, await target.sight(conn, fleet) if opened else sight

    async def _grow(
        self, conn: AsyncConn, sighted: FleetView, target: FleetTarget, plans: list[ShrinkPlan], by: int, sizing: Sizing
    ) -> None:
        """First keeps the workers that were chosen to go and are still there: they are ready now, if no person took them out."""
        fleet = sighted.fleet
        for plan in reversed([plan for plan in plans if plan.may_be_undone and sighted.out_of_service.isdisjoint(plan.going)]):
            if len(plan.going) <= by:
                by -= len(plan.going)
                await Shrinking(conn, self._holder, fleet, target, sighted.look.at).undo(plan)
        if by:
            observe(seen.grows(fleet.name, "up", sighted.look.replicas, sizing.replicas, sizing.reason), self._meter)
            await self._begin_growth(conn, sighted, target, fleet.replicas + by, sizing.reason)

    async def _begin_growth(self, conn: AsyncConn, sighted: FleetView, target: FleetTarget, to: int, reason: str) -> None:
        fleet = sighted.fleet
        detail = {"from": fleet.replicas, "to": to, "reason": reason, "load": told_of(sighted.look)}
        await self._finish_growth(conn, fleet, target, await StepLog(conn, self._holder, fleet).begin(GROW, detail))

    async def _finish_growth(self, conn: AsyncConn, fleet: FleetRow, target: FleetTarget, step: StepRow) -> None:
        log = StepLog(conn, self._holder, fleet)
        if not step.done:
            await log.resize(target, step.plan, int(step.detail["to"]))
            await log.note(step, {})
        await log.close(step.plan)

    async def _shrink(
        self, conn: AsyncConn, sighted: FleetView, target: FleetTarget, plans: list[ShrinkPlan], by: int, sizing: Sizing
    ) -> int:
        """How many are on their way; protected ones stay."""
        look = sighted.look
        mine = [worker.service_id for worker in sighted.workers.values() if worker.running and worker.name not in sighted.going]
        known = candidates(sighted, await worker_costs(conn, mine, sighted.policy))
        choice = choose([worker for worker in known if not worker.out_of_service], by)
        names = set(choice.chosen)
        chosen = [worker for worker in known if worker.name in names]
        told: dict[str, Any] = why(sighted, look.replicas, sizing.replicas, sizing.reason, choice.passed_over, choice.protected)
        _, begun = await self._begin_plans(conn, sighted, target, plans, chosen, known, told)
        return begun

    async def _retire(self, conn: AsyncConn, sighted: FleetView, target: FleetTarget, plans: list[ShrinkPlan]) -> FleetView:
        """Ends the workers that people took out of service and that run nothing. They count as none, so no load and no rate
        matters. Returns the fleet as it is then.
        """
        known = candidates(sighted, {})
        idle = [worker for worker in known if worker.out_of_service and not worker.running]
        if not idle:
            return sighted
        replicas = sighted.look.replicas
        told = why(sighted, replicas, replicas, "taken out of service by hand, and idle", (), ())
        fleet, _ = await self._begin_plans(conn, sighted, target, plans, idle, known, told)
        return replace(sighted, fleet=fleet, going=sighted.going | {worker.name for worker in idle})

    async def _begin_plans(
        self,
        conn: AsyncConn,
        sighted: FleetView,
        target: FleetTarget,
        plans: list[ShrinkPlan],
        chosen: Sequence[Candidate],
        known: Sequence[Candidate],
        told: dict[str, Any],
    ) -> tuple[FleetRow, int]:
        """Returns the fleet as it is then, and how many of the ``chosen`` are on their way."""
        fleet, look = sighted.fleet, sighted.look
        begun = 0
        for group in islice(split(chosen), max(PLANS - len(plans), 0)):
            leaving = ", ".join(worker.name for worker in group)
            observe(seen.shrinks(fleet.name, "down", look.replicas, told["to"], leaving, told["reason"]), self._meter)
            shrinking = Shrinking(conn, self._holder, fleet, target, look.at)
            await shrinking.carry_on(await shrinking.begin(group, known, told))
            fleet = await scaling.read_fleet(conn, fleet.name)
            begun += len(group)
        return fleet, begun

    async def _clear_fences(self, conn: AsyncConn) -> None:
        """Of plans that have ended, as their fleet was deleted in the middle."""
        strays = await scaling.find_stray_fences(conn)
        if strays:
            observe(seen.fences_cleared(", ".join(name for _, name in strays)))
            for plan in {plan for plan, _ in strays}:
                async with scaling.acting(conn, self._holder):
                    await scaling.take_down_fences(conn, plan)
            await scaling.wake_workers(conn)
