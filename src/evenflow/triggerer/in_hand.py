"""The triggers that this triggerer has in hand, and their outcomes."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Iterable

from evenflow.core.meter import Meter
from evenflow.killpoints import KillPoint, reached
from evenflow.masker import Masker
from evenflow.membership.log_shipper import LogShipper
from evenflow.telemetry.observing import observe
from evenflow.triggerer import limits
from evenflow.triggerer import observations as seen
from evenflow.triggerer.hosts import Hosts, Outcomes
from evenflow.triggerer.reporter import TriggerReporter
from evenflow.triggerer.trigger import Trigger
from evenflow.wire.triggers import TriggerAssignment, TriggerReport


class TriggersInHand:
    """Implements :class:`evenflow.triggerer.hosts.Outcomes`. ``room`` is set while there is room for another trigger. ``masker``
    knows the secrets of this service's environment, which triggers see, too.
    """

    def __init__(
        self,
        capacity: int,
        hosts: Callable[[Outcomes], Hosts],
        reporter: TriggerReporter,
        logs: LogShipper,
        masker: Masker,
        meter: Meter,
    ) -> None:
        self._capacity, self._reporter, self._logs, self._masker, self._meter = capacity, reporter, logs, masker, meter
        self.hosts = hosts(self)
        self._loop = asyncio.get_running_loop()
        self._triggers: dict[int, Trigger] = {}  # by epoch
        self._begun: dict[tuple[int, int], None] = {}  # claims that were ever in hand, the oldest first
        self._keys = itertools.count(1)
        self._flushing: set[asyncio.Task[None]] = set()
        self.room = asyncio.Event()
        self.room.set()
        self._over = asyncio.Event()
        self._over.set()

    @property
    def free(self) -> int:
        return max(self._capacity - len(self._triggers), 0)

    @property
    def count(self) -> int:
        return len(self._triggers)

    @property
    def epochs(self) -> list[int]:
        return list(self._triggers)

    def accept(self, assignments: Iterable[TriggerAssignment]) -> None:
        """Begins triggers that are new here: an answer may come late, or twice, when its triggers have long been given back."""
        fresh = []
        for assignment in assignments:
            claim = (assignment.epoch, assignment.claim)
            if claim in self._begun:
                continue
            self._begun[claim] = None
            if len(self._begun) > limits.CLAIMS_KNOWN:
                del self._begun[next(iter(self._begun))]
            if (earlier := self._triggers.get(assignment.epoch)) is not None:  # an earlier claim of the trigger, which is over
                self.hosts.stop([earlier])
            trigger = Trigger(next(self._keys), assignment, self._logs, self._masker)
            trigger.learn(assignment.secrets)
            self._triggers[assignment.epoch] = trigger
            fresh.append(trigger)
        if fresh:
            self._over.clear()
            reached(KillPoint.TRIGGERS_HEARD)
            self.hosts.start(fresh)
            reached(KillPoint.TRIGGERS_BEGUN)
        if not self.free:
            self.room.clear()

    def decline(self, assignments: Iterable[TriggerAssignment]) -> None:
        """Gives back triggers that never began."""
        for assignment in assignments:
            self._begun[assignment.epoch, assignment.claim] = None
            self._reporter.add(assignment.epoch, TriggerReport(token=assignment.token, given_back=True))

    def stop(self, epochs: Iterable[int]) -> None:
        """Stops triggers that no task waits for any more."""
        found = (self._triggers.get(epoch) for epoch in epochs)
        self.hosts.stop([trigger for trigger in found if trigger is not None and not trigger.stopping])

    def share_out(self, number: int) -> None:
        """Gives back the last ``number`` triggers, because other triggerers have fewer. An event during the stop is still
        reported.
        """
        number -= sum(trigger.given_back for trigger in self._triggers.values())
        running = [trigger for trigger in self._triggers.values() if not trigger.stopping]
        chosen = running[-min(number, limits.SHARED_OUT) :] if number > 0 else []
        for trigger in chosen:
            trigger.given_back = True
        self.hosts.stop(chosen)

    async def give_back(self) -> None:
        """Stops all, so that others run them. The processes of those that do not stop in time are ended."""
        running = [trigger for trigger in self._triggers.values() if not trigger.stopping]
        for trigger in running:
            trigger.given_back = True
        self.hosts.stop(running)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limits.DRAIN):
                await self._over.wait()
        left = list(self._triggers.values())
        self.hosts.abandon()
        await self.hosts.gone()
        for trigger in left:
            self.stopped(trigger)
        if self._flushing:
            await asyncio.wait(self._flushing)

    def abandon(self) -> None:
        """Kills all at once without reports, because they belong to others."""
        self.hosts.abandon()
        for trigger in self._triggers.values():
            trigger.close_log()
        self._triggers.clear()
        self._settle()

    # -- their outcomes

    def fired(self, trigger: Trigger, event: bytes) -> None:
        reached(KillPoint.TRIGGER_FIRED)
        observe(seen.trigger_fired(), self._meter)
        self._report(trigger, TriggerReport(token=trigger.assignment.token, event=event))

    def failed(self, trigger: Trigger, reason: str, output: str = "") -> None:
        if output:
            trigger.write(output.encode(errors="backslashreplace"))
        reason = trigger.masked(reason)
        observe(seen.trigger_failed(trigger.name, trigger.assignment.failures + 1, reason), self._meter)
        trigger.note(f"the trigger failed: {reason}")
        self._report(trigger, TriggerReport(token=trigger.assignment.token, error=reason))

    def stopped(self, trigger: Trigger) -> None:
        if trigger.given_back:
            self._report(trigger, TriggerReport(token=trigger.assignment.token, given_back=True))
        else:
            trigger.close_log()
            self._forget(trigger)

    def _report(self, trigger: Trigger, report: TriggerReport) -> None:
        """Reports once its last lines are stored, because later lines are refused."""
        at = self._loop.time()
        if trigger.close_log():
            task = self._loop.create_task(self._report_flushed(trigger, report, at))
            self._flushing.add(task)
            task.add_done_callback(self._flushing.discard)
        else:
            self._reporter.add(trigger.epoch, report, at)
            self._forget(trigger)

    async def _report_flushed(self, trigger: Trigger, report: TriggerReport, at: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limits.FLUSH):
                await trigger.log_shipped()
        self._reporter.add(trigger.epoch, report, at)
        self._forget(trigger)

    def _forget(self, trigger: Trigger) -> None:
        if self._triggers.get(trigger.epoch) is trigger:
            del self._triggers[trigger.epoch]
        self._settle()

    def _settle(self) -> None:
        if self.free:
            self.room.set()
        if not self._triggers:
            self._over.set()
