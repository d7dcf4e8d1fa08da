"""How workers leave a fleet: a plan of steps, each a row before it is done (R-AS3, R-AS4).

Theory of operation
-------------------
::

    choose -> fence -> load -> release -> drain -> mark -> resize -> verify -> restore
                                            |
                                            +-> undo, when they are needed again

``choose`` names workers and what each runs. ``fence`` refuses their claims in the database: a look afterwards sees all tries that
they will ever have, because a fence waits for claims under way. ``load`` looks, and ``release`` returns workers that have got tries
since the choice to service. The others ``drain``: they end what they have, for as long as the fleet's policy says. A worker that
now runs what people protect is returned; a larger weight, a longer task or a cordon change nothing of the drain. ``mark`` tells the
target the cost of each, and looks which workers the target would end by its own order: it waits while that is a living worker
outside this plan. ``resize`` writes which workers still go, tells the target its number, which may take long and happens in no
transaction, and writes the outcome: from then on they end, by SIGTERM. ``verify`` waits until it is known which workers have gone,
and ``restore`` removes the fences of those that are still there.

All memory is in rows. An autoscaler that starts after a crash finds the last step of each plan: a step not noted as done is done
again, which changes nothing if it had been done; after a noted step the next one follows. A fence has an end, so workers take tries
again by themselves if no autoscaler comes; before anything relies on a fence, the autoscaler checks that it was held without a gap.

A plan of idle workers has many of them, a plan of a worker that runs something has only this one: a slow worker delays no other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from evenflow.autoscaler import observations as seen
from evenflow.autoscaler.fleet_view import FleetView
from evenflow.autoscaler.limits import FENCE_S, NAMED, VERIFY_S
from evenflow.autoscaler.steps import StepLog
from evenflow.autoscaler.target import FleetTarget
from evenflow.core.scaling.choosing import Candidate, ranks
from evenflow.core.scaling.plan_steps import (
    CHOOSE,
    DRAIN,
    FENCE,
    LOAD,
    MARK,
    ORDER,
    RELEASE,
    RESIZE,
    RESTORE,
    UNDO,
    VERIFY,
)
from evenflow.core.scaling.sizing import Look
from evenflow.explaining.fleet_costs import worker_costs
from evenflow.killpoints import KillPoint, reached
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving import scaling
from evenflow.store.serving.scaling import FleetRow, StepRow, WorkerRow
from evenflow.telemetry.observing import observe

Detail = dict[str, Any]


@dataclass(slots=True)
class ShrinkPlan:
    """As its steps say it."""

    steps: list[StepRow]

    @property
    def number(self) -> int:
        return self.steps[0].plan

    @property
    def chosen(self) -> dict[str, int]:
        """And how many tries each had."""
        return dict(self.steps[0].detail["running"])

    @property
    def taken_back(self) -> set[str]:
        return {name for step in self.steps for name in step.detail.get("taken_back", ())}

    @property
    def going(self) -> list[str]:
        return [name for name in self.chosen if name not in self.taken_back]

    @property
    def last(self) -> StepRow:
        return self.steps[-1]

    @property
    def may_be_undone(self) -> bool:
        """Before the target has been told to end them."""
        return self.last.step in (CHOOSE, FENCE, LOAD, RELEASE, DRAIN, MARK)

    @property
    def waits_for_target(self) -> bool:
        """For pods, or processes, that are about to go."""
        return self.last.step in (MARK, VERIFY) and not self.last.done

    @property
    def is_counted(self) -> bool:
        """Whether the fleet's number has them in it."""
        return self.may_be_undone or (self.last.step == RESIZE and not self.last.done)


class Shrinking:
    """For one loop and one fleet. ``conn`` is that of the autoscaler with the service id ``holder``."""

    def __init__(self, conn: AsyncConn, holder: int, fleet: FleetRow, target: FleetTarget, now: float) -> None:
        self._conn, self._holder, self._fleet, self._target, self._now = conn, holder, fleet, target, now
        self._log = StepLog(conn, holder, fleet)
        self._takes: dict[str, Callable[[ShrinkPlan, StepRow], Awaitable[Detail | None]]] = {
            CHOOSE: self._choose,
            FENCE: self._fence,
            LOAD: self._load,
            RELEASE: self._release,
            DRAIN: self._drain,
            MARK: self._mark,
            RESIZE: self._resize,
            VERIFY: self._verify,
            RESTORE: self._restore,
            UNDO: self._undo,
        }

    async def begin(self, workers: Iterable[Candidate], all_of_them: Iterable[Candidate], why: Detail) -> ShrinkPlan:
        """A plan to end these, so far one row."""
        chosen, known = list(workers), list(all_of_them)
        ranked = ranks(known)
        shown = {*(worker.name for worker in chosen), *why["passed_over"]}
        detail = {
            "running": {worker.name: worker.running for worker in chosen},
            "ranks": {worker.name: ranked[worker.name] for worker in chosen},
            "costs": {worker.name: round(worker.cost or 0.0) for worker in known if worker.name in shown},
            "not_ready": [worker.name for worker in chosen if not worker.is_ready],
            **why,
        }
        return ShrinkPlan([await self._log.begin(CHOOSE, detail)])

    async def carry_on(self, plan: ShrinkPlan) -> bool:
        """As far as it goes now; whether that is to its end."""
        while True:
            if plan.last.done:
                if plan.last.step in (RESTORE, UNDO):
                    await self._log.close(plan.number)
                    return True
                await self._step(plan, self._after(plan))
            detail = await self._takes[plan.last.step](plan, plan.last)
            if detail is None:
                return False
            await self._log.note(plan.last, detail)

    async def undo(self, plan: ShrinkPlan) -> None:
        """Its workers are needed again."""
        observe(seen.plan_undone(self._fleet.name, plan.number, ", ".join(plan.going)))
        await self._step(plan, UNDO)
        await self.carry_on(plan)

    def _after(self, plan: ShrinkPlan) -> str:
        step = ORDER[ORDER.index(plan.last.step) + 1]
        if not plan.going and step in (DRAIN, MARK, RESIZE, VERIFY):
            return RESTORE
        return step

    async def _step(self, plan: ShrinkPlan, step: str) -> None:
        detail: Detail = {"replicas": self._fleet.replicas - len(plan.going)} if step == RESIZE else {}
        plan.steps.append(await self._log.begin(step, detail, plan.number))

    # -- the steps: each answers what came of it, or None when there is something to wait for

    async def _choose(self, plan: ShrinkPlan, step: StepRow) -> Detail | None:
        return {}

    async def _fence(self, plan: ShrinkPlan, step: StepRow) -> Detail | None:
        workers = [worker.service_id for worker in await scaling.read_workers(self._conn, plan.going)]
        async with scaling.acting(self._conn, self._holder, plan.number):
            fenced = await scaling.put_up_fences(self._conn, plan.number, workers, for_s=FENCE_S)
        return {"fenced": sorted(fenced)}

    async def _load(self, plan: ShrinkPlan, step: StepRow) -> Detail | None:
        """One that lives and has no fence of this plan may have got tries, too: it registered meanwhile."""
        chosen, workers = plan.chosen, await scaling.read_workers(self._conn, plan.going)
        grown = sorted({worker.name for worker in workers if worker.running > chosen[worker.name]} | self._unfenced(plan, workers))
        if grown:
            observe(seen.workers_grew(self._fleet.name, ", ".join(grown)))
        return {"taken_back": grown}

    async def _release(self, plan: ShrinkPlan, step: StepRow) -> Detail | None:
        if plan.taken_back:
            await self._take_down(plan, plan.taken_back)
        return {}

    async def _drain(self, plan: ShrinkPlan, step: StepRow) -> Detail | None:
        async with scaling.acting(self._conn, self._holder, plan.number):
            await scaling.renew_fences(self._conn, plan.number, for_s=FENCE_S)
        workers = await scaling.read_workers(self._conn, plan.going)
        late = self._now - step.at >= self._fleet.rule.drain
        was_told = late or self._fleet.changed_at.timestamp() >= plan.steps[0].at
        exempt = await self._exempt(workers) if was_told else set()
        open_again = sorted(self._unfenced(plan, workers) | exempt)
        if open_again:
            await self._take_down(plan, open_again)
        busy = [worker.name for worker in workers if worker.running and worker.name not in open_again]
        if busy and not late:
            return None
        if busy:
            observe(seen.drain_over(self._fleet.name, ", ".join(busy), self._fleet.rule.drain))
        return {"taken_back": open_again, "busy": busy}

    async def _mark(self, plan: ShrinkPlan, step: StepRow) -> Detail | None:
        """Those that lose their fence meanwhile are found by the next step. One that has gone by itself, and has another one in its
        place, is no longer of the plan.
        """
        told = plan.steps[0].detail["ranks"]
        going = plan.going
        async with scaling.acting(self._conn, self._holder, plan.number):
            await scaling.renew_fences(self._conn, plan.number, for_s=FENCE_S)
        await self._target.mark(self._fleet, {name: told[name] for name in going})
        sight = await self._target.sight(self._conn, self._fleet)
        gone = set() if sight.order is None else set(going).difference(sight.order)
        first = [] if sight.order is None else [name for name in sight.order[: len(going) - len(gone)] if name not in going]
        others = sorted(worker.name for worker in await scaling.read_workers(self._conn, first)) if first else []
        if sight.is_settled and not others:
            return {"instead": first, "taken_back": sorted(gone)}
        if self._now - step.at < VERIFY_S:
            return None
        observe(seen.fleet_unsettled(self._fleet.name, ", ".join(others)))
        return {"taken_back": going}

    async def _resize(self, plan: ShrinkPlan, step: StepRow) -> Detail | None:
        """A worker that is no longer fenced stays, though the number is one less: the next loop corrects it."""
        again = "taken_back" in step.detail
        async with scaling.acting(self._conn, self._holder, plan.number):
            await scaling.renew_fences(self._conn, plan.number, for_s=FENCE_S)
            workers = await scaling.read_workers(self._conn, plan.going)
            open_again = self._unfenced(plan, workers) | await self._exempt(workers)
            detail: Detail = {
                "replicas": int(step.detail["replicas"]) + len(open_again),
                "taken_back": sorted([*step.detail.get("taken_back", ()), *open_again]),
            }
            await scaling.detail_step(self._conn, step, detail)
        reached(KillPoint.STEP_DECIDED)
        set_to = await self._log.resize(self._target, plan.number, detail["replicas"], plan.going, again=again)
        self._fleet = self._fleet._replace(replicas=set_to)
        return {"set_to": set_to}

    async def _verify(self, plan: ShrinkPlan, step: StepRow) -> Detail | None:
        sight = await self._target.sight(self._conn, self._fleet)
        there = {replica.name: replica.leaving for replica in sight.replicas}
        left = sorted(name for name in plan.going if name in there)
        late = self._now - step.at >= VERIFY_S
        if (any(there[name] for name in left) or (left and not sight.is_settled)) and not late:
            return None
        if left:
            observe(seen.workers_stayed(self._fleet.name, ", ".join(left)))
        return {"gone": sorted(set(plan.going) - set(left)), "stayed": left}

    async def _restore(self, plan: ShrinkPlan, step: StepRow) -> Detail | None:
        await self._target.unmark(self._fleet, list(plan.chosen))
        return {"in_service": await self._take_down(plan, None)}

    async def _undo(self, plan: ShrinkPlan, step: StepRow) -> Detail | None:
        return await self._restore(plan, step)

    def _unfenced(self, plan: ShrinkPlan, workers: Iterable[WorkerRow]) -> set[str]:
        """Workers whose fence has had a gap, and those that have registered anew: they may have got tries."""
        return {worker.name for worker in workers if worker.fence != plan.number}

    async def _exempt(self, workers: Iterable[WorkerRow]) -> set[str]:
        """R-AS8: workers that run what people have protected since they were chosen stay, until a person says otherwise."""
        busy = [worker for worker in workers if worker.running]
        if not busy:
            return set()
        costs = await worker_costs(self._conn, [worker.service_id for worker in busy], self._fleet.rule)
        exempt = {worker.name for worker in busy if costs.get(worker.service_id, 0.0) is None}
        if exempt:
            observe(seen.drain_called_off(self._fleet.name, ", ".join(sorted(exempt))))
        return exempt

    async def _take_down(self, plan: ShrinkPlan, names: Iterable[str] | None) -> list[str]:
        async with scaling.acting(self._conn, self._holder, plan.number):
            freed = await scaling.take_down_fences(self._conn, plan.number, None if names is None else list(names))
        if freed:
            await scaling.wake_workers(self._conn)
        return sorted(freed)


def split(chosen: Iterable[Candidate]) -> list[list[Candidate]]:
    """Into plans: all that run nothing, and each of the others alone."""
    workers = list(chosen)
    idle = [worker for worker in workers if not worker.running]
    return [*([idle] if idle else []), *([worker] for worker in workers if worker.running)]


def names_going(plans: Iterable[ShrinkPlan]) -> set[str]:
    return {name for plan in plans for name in plan.going if plan.last.step not in (RESTORE, UNDO)}


def names_counted(plans: Iterable[ShrinkPlan]) -> set[str]:
    """Those of them that the fleet's number has in it."""
    return {name for plan in plans for name in plan.going if plan.is_counted}


def told_of(look: Look) -> dict[str, int]:
    return {
        "running": look.running + look.aside,
        "aside": look.aside,
        "waiting": look.waiting,
        "expected": look.expected,
        "ready": look.ready,
        "out_of_service": look.out_of_service,
    }


def why(view: FleetView, before: int, after: int, reason: str, passed_over: Sequence[str], protected: Sequence[str]) -> Detail:
    """What people are told of a choice: the first workers that were passed over, and those that are protected."""
    return {
        "from": before,
        "to": after,
        "reason": reason,
        "load": told_of(view.look),
        "passed_over": list(passed_over[:NAMED]),
        "more_passed_over": len(passed_over[NAMED:]),
        "protected": list(protected[:NAMED]),
        "more_protected": len(protected[NAMED:]),
    }
