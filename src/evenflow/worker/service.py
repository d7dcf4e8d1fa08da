"""The worker as a service: it registers, beats, claims and runs tries, and drains or stops in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from evenflow.core import metrics
from evenflow.core.ending import Ending, OutcomeName
from evenflow.core.meter import Metric
from evenflow.core.model import Enforcement
from evenflow.errors import SettingsError
from evenflow.forking.boot_clock import boot_time
from evenflow.forking.owned_template import Reuse
from evenflow.forking.remains import named
from evenflow.killpoints import KillPoint, reached
from evenflow.membership.claiming_service import ClaimingService
from evenflow.membership.limits import TEMPLATE_MEMORY
from evenflow.membership.service import Member
from evenflow.telemetry.observing import observe
from evenflow.telemetry.service import Loops
from evenflow.wire.large_values import LargeValues
from evenflow.wire.messages import Assignment, Beat, BeatAnswer, ClaimAnswer, Report
from evenflow.wire.versions import RESUMES_WIRE
from evenflow.worker import limits
from evenflow.worker import observations as seen
from evenflow.worker.attempt import Tools
from evenflow.worker.claims import TryClaims, TryPolls
from evenflow.worker.handed import Handed, HandedTries, Intake
from evenflow.worker.handing import Handing
from evenflow.worker.memory import MemoryWatch, kernel_counters
from evenflow.worker.reporter import Reporter
from evenflow.worker.resources import Limits
from evenflow.worker.tries import Tries

TASK_PROCESS = "evenflow.worker.task_process"
AIRFLOW_PROCESS = "evenflow.airflow.running.task_process"
REUSE = partial(Reuse, jobs=limits.REUSE_TRIES, age_s=limits.REUSE_AGE, memory=limits.REUSE_MEMORY * 2**20)
_KILLED = "ended on request"  # the scheduler knows on whose request
_REPORT_LOST = "it has ended, and the report of its end was lost"


class WorkerService(ClaimingService):
    """Runs up to ``slots`` tries of ``queues`` at once, and in ``resume_slots`` more that resume from waiting. A worker whose tries
    are ``handed`` to it (:meth:`run_try`) asks for such alone, and runs all that it gets; other processes of this host hand them
    over at ``handed_at``.
    """

    kind = "worker"
    template_module = TASK_PROCESS
    foreign_module = AIRFLOW_PROCESS
    code_folder = "code"

    def __init__(
        self,
        member: Member,
        *,
        slots: int,
        resume_slots: int,
        queues: list[str],
        handed: bool = False,
        handed_at: str = "",
        values: LargeValues,
        template_memory: int = TEMPLATE_MEMORY,
        reuse: Callable[[str], Reuse] = REUSE,
        resources: Enforcement = "warn",
        try_processes: int = limits.TRY_PROCESSES,
    ) -> None:
        if slots < 1 or (resume_slots < 1 and not handed) or not queues:
            raise SettingsError(
                f"Worker {member.name!r} has {slots} slots, {resume_slots} for resumes and the queues {queues}; "
                "it needs one of each."
            )
        super().__init__(member, template_memory=template_memory)
        self._slots, self._resume_slots, self._queues, self._values, self._reuse = slots, resume_slots, queues, values, reuse
        self._handed, self._handed_at, self._intake = handed, handed_at, Intake()
        self._resources: Enforcement = resources
        self._try_processes = try_processes

    def _equip(self) -> tuple[Reporter, TryClaims]:
        self._memory, self._limits = MemoryWatch(kernel_counters()), Limits(self._resources, self._count_try, self._try_processes)
        self._reporter = Reporter(self._client, lambda epoch: self._tries.stored(epoch))
        tools = Tools(
            self._client,
            self._templates,
            self._reporter,
            self._logs,
            self._memory,
            self._limits,
            self._values,
            self._masker,
            self._member.api_url.partition(",")[0].rstrip("/"),
            self._reuse,
        )
        self._tries = Tries(self._slots, self._resume_slots, tools, apart=self._handed)
        claims = HandedTries if self._handed else TryPolls
        self._claims: TryClaims = claims(self._client, self._queues, self._tries, self._claim_answered)
        self._cut: list[int] = []  # epochs of tries that it had begun when it was told to end
        self._measure()
        return self._reporter, self._claims

    def _work(self) -> Loops:
        handing = {}
        if self._handed_at:
            assert isinstance(self._claims, HandedTries), "who asks for tries is handed none"
            handing["handing"] = Handing(self._handed_at, self.run_try, self._intake, self._claims.leave).run()
        return {**super()._work(), **handing}

    async def _hand_over(self) -> None:
        self._tries.give_back("its worker was told to end before it had begun it")
        await super()._hand_over()

    async def _rid(self) -> None:
        within_s = self._ends_within_s
        if within_s is not None and (going := len(self._tries.epochs)):
            observe(seen.tries_to_end(going, within_s))
            self._tries.warn(f"its worker is to end: what has not ended within {within_s:g} s begins anew on another one")
        await self._over()

    async def _over(self) -> None:
        await self._tries.over()

    async def _end(self) -> None:
        if cut := len(self._tries.epochs):
            observe(seen.tries_sent_on(cut))
        self._cut = self._tries.begun
        await super()._end()
        await self._tries.over()  # R-CS9: after the goodbye its tries begin elsewhere
        if left := await asyncio.to_thread(self._tries.left_running):
            observe(seen.processes_left(named(left)))

    def _measure(self) -> None:
        meter, tries = self.health.meter, self._tries
        meter.gauge(metrics.WORKER_SLOTS, lambda: self._slots)
        meter.gauge(metrics.WORKER_TRIES, lambda: len(tries.epochs))
        meter.gauge(metrics.WORKER_FREE, lambda: tries.free)
        meter.gauge(metrics.WORKER_RESUME_FREE, lambda: tries.spare)
        meter.gauge(metrics.WORKER_OUTRUN, lambda: len(tries.outrun))
        meter.count(metrics.WORKER_OUT_OF_MEMORY, 0)
        meter.count(metrics.WORKER_OUT_OF_PROCESSES, 0)
        meter.gauge(metrics.WORKER_UNACKNOWLEDGED, lambda: len(self._reporter.unacknowledged))
        meter.gauge(metrics.WORKER_LOG_BYTES, lambda: self._logs.held)
        meter.gauge(metrics.WORKER_LOG_LOST, lambda: self._logs.lost)

    def _count_try(self, metric: Metric) -> None:
        self.health.meter.count(metric, 1)

    def _detail(self) -> dict[str, Any]:
        slots = {"slots": self._slots, "resume_slots": self._resume_slots, "running": len(self._tries.epochs)}
        outrun = {"outrun": epochs} if (epochs := self._tries.outrun) else {}  # leases/expire_hung
        handed = {"handed": True} if self._handed else {}
        return {**self.health.detail, **slots, **outrun, **handed, "queues": self._queues}

    # -- beats

    def _beat(self) -> Beat:
        epochs = [*self._tries.epochs, *self._reporter.unacknowledged]
        return Beat(state=self._state, epochs=epochs, starting=self._tries.starting, detail=self._detail())

    def _farewell(self) -> Beat:
        """Returns the last beat: the tries that it had begun are lost. All else that it has claimed goes back, even if it never got
        the answer.
        """
        return Beat(state="stopped", epochs=[*self._cut, *self._tries.begun, *self._reporter.ran], starting=[])

    def _revoke(self, answer: BeatAnswer) -> None:
        self._memory.look()
        self._limits.look()
        self._tries.revoke(answer.revoked)

    def _go_on(self, answer: BeatAnswer) -> None:
        if self._presence.holds:
            self._tries.go_on()
            reported = set(self._reporter.unacknowledged)
            self._resume([assignment for assignment in answer.resend if assignment.epoch not in reported])
        self._tries.end(set(answer.kill) - set(answer.revoked), _KILLED)
        self._intake.set(is_open=answer.state == "active" and not answer.closed)

    def _resume(self, resent: list[Assignment]) -> None:
        """R-HA18: handles assignments of tries that are over here. The control plane does not know their reports: these were
        refused, or the database has lost them. It then sends the task as another try; a report that it does have overrides this
        one.
        """
        for assignment in resent:
            if self._tries.has_had(assignment.epoch):
                observe(seen.report_lost(assignment.epoch))
                self._reporter.exited(
                    assignment.epoch, Report(token=assignment.token, ending=Ending(outcome="lost", reason=_REPORT_LOST))
                )
        self._tries.accept(resent)

    def _lapsed(self) -> None:
        """R-CS7: from here on the tries may belong to others, or leases may not be counted. Until the control plane says which,
        none may continue.
        """
        observe(seen.tries_frozen(len(self._tries.epochs)))
        self._tries.freeze(asyncio.get_running_loop().time() - (boot_time() - self._presence.until))

    def _lost(self) -> None:
        observe(seen.tries_killed(len(self._tries.epochs)))
        super()._lost()

    def _abandon(self) -> None:
        self._tries.abandon_all()

    # -- claims

    async def _claim(self, service_id: int) -> None:
        await self._claims.run(service_id, resumes=self._presence.wire >= RESUMES_WIRE)

    async def run_try(self, epoch: int) -> Handed:
        """Claims a try that this worker is handed. Returns when it has ended; at once if it cannot have it."""
        assert isinstance(self._claims, HandedTries), "who asks for tries is handed none"
        return await self._claims.take(epoch)

    @property
    def outcome(self) -> OutcomeName | None:
        """The outcome of the try that ended last."""
        return self._reporter.outcome

    def _claim_answered(self, answer: ClaimAnswer) -> None:
        if answer.assignments:
            reached(KillPoint.CLAIM_HEARD)
        if self._presence.holds:  # otherwise they may be others' by now; if not, an answered beat brings them again
            self._tries.accept(answer.assignments)
        self._tries.end(answer.kill, _KILLED)
        self._heed(answer.state)
