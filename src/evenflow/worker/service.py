"""The worker as a service: registered, beating, claiming; running tries; drained or stopped in order."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Any, Literal

import structlog

from evenflow.client.execution import Credential, ExecutionClient
from evenflow.client.http import PLAIN
from evenflow.core import metrics
from evenflow.core.limits import LEASE_S
from evenflow.core.observation import Teller
from evenflow.errors import SettingsError
from evenflow.fleet.claiming import Claiming
from evenflow.fleet.code_cache import CodeCache
from evenflow.fleet.limits import LAST_WORDS, TEMPLATE_MEMORY
from evenflow.fleet.log_shipper import LogShipper
from evenflow.fleet.loops import Loops
from evenflow.fleet.presence import Presence, identity
from evenflow.fleet.templates import TemplatePool
from evenflow.forking import prctl
from evenflow.forking.boot_clock import boot_time
from evenflow.forking.orphans import reap_adopted
from evenflow.forking.owned_trunk import OwnedProcess
from evenflow.forking.remains import named
from evenflow.forking.sandbox import Sandbox, user_environment
from evenflow.killpoints import KillPoint, reached
from evenflow.masker import masker_of
from evenflow.telemetry.vitals import Vitals
from evenflow.wire.messages import Assignment, Beat, BeatAnswer, ClaimAnswer, Report
from evenflow.wire.tls import Tls
from evenflow.wire.versions import RETURNS_WIRE
from evenflow.worker.attempt import Tools
from evenflow.worker.claims import TryPolls
from evenflow.worker.memory import MemoryWatch, kernel_counters
from evenflow.worker.reporter import Reporter
from evenflow.worker.tries import Tries
from evenflow.worker.values import LargeValues

TASK_PROCESS = "evenflow.worker.task_process"
_KILLED = "ended on request"  # the scheduler says whose
_REPORT_LOST = "it has ended, and the report of its end was lost"

log = structlog.get_logger(__name__)


class WorkerService:
    """Runs up to ``slots`` tries of ``queues`` at once, and in ``resume_slots`` more such that return from waiting. ``home`` holds
    the code cache; ``token`` is that of its fleet.
    """

    def __init__(
        self,
        api_url: str,
        token: str,
        *,
        name: str,
        slots: int,
        resume_slots: int,
        queues: list[str],
        home: Path,
        values: LargeValues,
        template_memory: int = TEMPLATE_MEMORY,
        sandbox: Sandbox | None = None,
        tls: Tls = PLAIN,
        vitals: Vitals | None = None,
    ) -> None:
        if slots < 1 or resume_slots < 1 or not queues:
            raise SettingsError(
                f"Worker {name!r} has {slots} slots, {resume_slots} for returns and the queues {queues}; it needs one of each."
            )
        self.name = name
        self._api_url, self._token, self._home, self._values = api_url, token, home, values
        self._sandbox, self._tls, self._template_memory = sandbox, tls, template_memory
        self._slots, self._resume_slots, self._queues = slots, resume_slots, queues
        self.vitals = vitals or Vitals(Teller.WORKER, name)
        self._state: Literal["active", "draining"] = "active"
        self._loops = Loops()

    async def start(self) -> None:
        prctl.adopt_orphans()
        credential = Credential(self._token)
        self._client = ExecutionClient(self._api_url, credential, tls=self._tls)
        self._lifeline = ExecutionClient(
            self._api_url, credential, tls=self._tls
        )  # a beat must not wait for a connection that others use
        code = CodeCache(self._home / "code", self._client)
        await asyncio.to_thread(code.prune)
        self._memory = MemoryWatch(kernel_counters())
        self._templates = TemplatePool(
            TASK_PROCESS, code, user_environment(os.environ), self._sandbox, memory=self._template_memory
        )
        self._reporter = Reporter(self._client, lambda epoch: self._tries.stored(epoch))
        self._logs = LogShipper(self._client)
        tools = Tools(
            self._client,
            self._templates,
            self._reporter,
            self._logs,
            self._memory,
            self._values,
            masker_of(os.environ),
            self._api_url.partition(",")[0].rstrip("/"),
        )
        self._tries = Tries(self._slots, self._resume_slots, tools)
        self._claims = TryPolls(self._client, self._queues, self._tries, self._claim_answered)
        self._presence = Presence(
            self._lifeline,
            identity("worker", self.name, self._detail()),
            beat=self._beat,
            answered=self._beat_answered,
            lapsed=self._lapsed,
            lost=self._lost,
        )
        self._claiming = Claiming(self._presence, self._run_claims)
        self._lease = self.vitals.lease(LEASE_S)
        self._measure()
        try:
            await self._presence.join()
            self._lease.beat()
        except BaseException:
            await self._close()
            raise
        loops = {
            "presence": self._presence.keep(),
            "reports": self._reporter.run(),
            "logs": self._logs.run(),
            "claims": self._claiming.keep(),
        }
        self._loops.begin(loops)

    async def drain(self) -> None:
        self._state = "draining"
        self.vitals.draining = True
        await self._presence.beat_now()
        await self._claims.polls.drain()
        await self._tries.over()
        await self._reporter.delivered()
        await self._logs.shipped()

    async def stop(self) -> None:
        self._claims.polls.halt()
        self._claiming.drop()
        self._tries.abandon_all()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS):
                await self._tries.over()
                await self._reporter.delivered()
                await self._logs.shipped()
        await self._templates.close()
        await self._tries.over()  # R-CS9: upon the goodbye its tries begin elsewhere
        if left := await asyncio.to_thread(self._tries.left_running):
            log.warning("tasks have left processes running", processes=named(left))
        await self._presence.leave()
        await self._loops.end()
        await self._close()

    async def failed(self) -> BaseException:
        return await self._loops.failed()

    async def _close(self) -> None:
        await self._client.close()
        await self._lifeline.close()

    def _measure(self) -> None:
        meter, tries = self.vitals.meter, self._tries
        meter.gauge(metrics.WORKER_SLOTS, lambda: self._slots)
        meter.gauge(metrics.WORKER_TRIES, lambda: len(tries.epochs))
        meter.gauge(metrics.WORKER_FREE, lambda: tries.free)
        meter.gauge(metrics.WORKER_RESUME_FREE, lambda: tries.spare)
        meter.gauge(metrics.WORKER_OUTRUN, lambda: len(tries.outrun))
        meter.gauge(metrics.WORKER_UNACKNOWLEDGED, lambda: len(self._reporter.unacknowledged))
        meter.gauge(metrics.WORKER_LOG_BYTES, lambda: self._logs.held)
        meter.gauge(metrics.WORKER_LOG_LOST, lambda: self._logs.lost)

    def _detail(self) -> dict[str, Any]:
        slots = {"slots": self._slots, "resume_slots": self._resume_slots, "running": len(self._tries.epochs)}
        outrun = {"outrun": epochs} if (epochs := self._tries.outrun) else {}  # leases/expire_hung
        return {**self.vitals.detail, **slots, **outrun, "queues": self._queues}

    # -- beats

    def _beat(self) -> Beat:
        epochs = [*self._tries.epochs, *self._reporter.unacknowledged]
        return Beat(state=self._state, epochs=epochs, starting=self._tries.starting, detail=self._detail())

    def _beat_answered(self, answer: BeatAnswer, until: float) -> None:
        """What others have now is killed before anything goes on, and nothing begins under a lease that is over again."""
        self._lease.beat()
        self._memory.look()
        self._templates.end_idle()
        reap_adopted(OwnedProcess.pids)
        self._tries.revoke(answer.revoked)
        self._templates.lease(until)
        if self._presence.holds:
            self._tries.go_on()
            reported = set(self._reporter.unacknowledged)
            self._resume([assignment for assignment in answer.resend if assignment.epoch not in reported])
        self._tries.end(set(answer.kill) - set(answer.revoked), _KILLED)
        if answer.state == "draining":
            self._told_to_drain()

    def _resume(self, resent: list[Assignment]) -> None:
        """R-HA18: what was in hand and is over has been reported, and the control plane does not know it: the report was refused,
        or the database has lost it. It shall send that again as another try; a report that it does have outweighs this one.
        """
        for assignment in resent:
            if self._tries.has_had(assignment.epoch):
                log.warning("the report of a try was lost", epoch=assignment.epoch)
                self._reporter.exited(
                    assignment.epoch, Report(token=assignment.token, kind="exit", outcome="lost", reason=_REPORT_LOST)
                )
        self._tries.accept(resent)

    def _lapsed(self) -> None:
        """R-CS7: from here on the tries may be others', or nobody counts. Until somebody says which, none may go on."""
        log.warning("tries are frozen until the control plane answers", tries=len(self._tries.epochs))
        self._tries.freeze(asyncio.get_running_loop().time() - (boot_time() - self._presence.until))

    def _lost(self) -> None:
        """R-CS7: the tries are others', so none may go on here."""
        log.warning("killing all tries", tries=len(self._tries.epochs))
        self._tries.abandon_all()
        self._claiming.drop()

    # -- claims

    async def _run_claims(self, service_id: int) -> None:
        await self._claims.run(service_id, returns=self._presence.wire >= RETURNS_WIRE)

    def _claim_answered(self, answer: ClaimAnswer) -> None:
        if answer.assignments:
            reached(KillPoint.CLAIM_HEARD)
        if self._presence.holds:  # else they may be others' by now; if not, an answered beat brings them again
            self._tries.accept(answer.assignments)
        self._tries.end(answer.kill, _KILLED)
        match answer.state:
            case "lost":
                self._presence.lose()
            case "draining":
                self._told_to_drain()
            case "active":
                pass

    def _told_to_drain(self) -> None:
        if self._state == "active":
            log.info("told to drain", worker=self.name)
            self._state = "draining"
            self._claims.polls.halt()
