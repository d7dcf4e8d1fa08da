"""The triggerer as a service: registered, beating, claiming; running triggers; drained or stopped in order."""

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
from evenflow.fleet.limits import LAST_WORDS
from evenflow.fleet.log_shipper import LogShipper
from evenflow.fleet.loops import Loops
from evenflow.fleet.presence import Presence, identity
from evenflow.fleet.templates import TemplatePool
from evenflow.forking import prctl
from evenflow.forking.orphans import reap_adopted
from evenflow.forking.owned_trunk import OwnedProcess
from evenflow.forking.sandbox import Sandbox, user_environment
from evenflow.masker import masker_of
from evenflow.telemetry.vitals import Vitals
from evenflow.triggerer.claims import TriggerPolls
from evenflow.triggerer.hosts import Hosts
from evenflow.triggerer.in_hand import TriggersInHand
from evenflow.triggerer.questions import Questions
from evenflow.triggerer.reporter import TriggerReporter
from evenflow.wire.messages import Beat, BeatAnswer
from evenflow.wire.tls import Tls
from evenflow.wire.triggers import TriggersAnswer

HOST_PROCESS = "evenflow.triggerer.host_process"

log = structlog.get_logger(__name__)


class TriggererService:
    """Runs up to ``capacity`` triggers of ``queues`` at once, of all queues when none is named. ``home`` holds the code cache;
    ``token`` is that of its fleet.
    """

    def __init__(
        self,
        api_url: str,
        token: str,
        *,
        name: str,
        capacity: int,
        queues: list[str],
        home: Path,
        sandbox: Sandbox | None = None,
        tls: Tls = PLAIN,
        vitals: Vitals | None = None,
    ) -> None:
        if capacity < 1:
            raise SettingsError(f"Triggerer {name!r} has a capacity of {capacity}; it needs at least one.")
        self.name = name
        self._api_url, self._token, self._home = api_url, token, home
        self._sandbox, self._tls = sandbox, tls
        self._capacity, self._queues = capacity, queues
        self.vitals = vitals or Vitals(Teller.TRIGGERER, name)
        self._state: Literal["active", "draining"] = "active"
        self._loops = Loops()
        self._frozen = False

    async def start(self) -> None:
        prctl.adopt_orphans()
        credential = Credential(self._token)
        self._client = ExecutionClient(self._api_url, credential, tls=self._tls)
        self._lifeline = ExecutionClient(
            self._api_url, credential, tls=self._tls
        )  # a beat must not wait for a connection that others use
        code = CodeCache(self._home / "trigger-code", self._client)  # its own: a worker of this home prunes what no try uses
        await asyncio.to_thread(code.prune)
        meter = self.vitals.meter
        self._templates = templates = TemplatePool(HOST_PROCESS, code, user_environment(os.environ), self._sandbox)
        self._questions = questions = Questions(self._client)
        masker = masker_of(os.environ)
        self._reporter = TriggerReporter(self._client, lambda seconds: meter.observe(metrics.EVENT_SECONDS, seconds))
        self._logs = LogShipper(self._client)
        self._in_hand = TriggersInHand(
            self._capacity,
            lambda outcomes: Hosts(templates, questions, outcomes, meter, masker),
            self._reporter,
            self._logs,
            masker,
            meter,
        )
        self._claims = TriggerPolls(self._client, self._queues, self._in_hand, self._claim_answered)
        self._presence = Presence(
            self._lifeline,
            identity("triggerer", self.name, self._detail()),
            beat=self._beat,
            answered=self._beat_answered,
            lapsed=self._lapsed,
            lost=self._lost,
        )
        self._heard_at = 0.0  # by the database's clock
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
        """Its triggers are given back, and go on elsewhere at once."""
        self._state = "draining"
        self.vitals.draining = True
        await self._presence.beat_now()
        await self._claims.polls.drain()
        await self._in_hand.give_back()
        await self._reporter.delivered()
        await self._logs.shipped()

    async def stop(self) -> None:
        self._claims.polls.halt()
        self._claiming.drop()
        self._in_hand.abandon()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS):
                await self._in_hand.hosts.gone()
                await self._reporter.delivered()
                await self._logs.shipped()
        await self._templates.close()
        await self._presence.leave()  # not before its triggers are over: from now on others run them
        self._questions.close()
        await self._loops.end()
        await self._close()

    async def failed(self) -> BaseException:
        return await self._loops.failed()

    async def _close(self) -> None:
        await self._client.close()
        await self._lifeline.close()

    def _measure(self) -> None:
        meter, in_hand = self.vitals.meter, self._in_hand
        meter.gauge(metrics.TRIGGERER_CAPACITY, lambda: self._capacity)
        meter.gauge(metrics.TRIGGERER_TRIGGERS, lambda: in_hand.count)
        meter.gauge(metrics.TRIGGERER_HOSTS, lambda: in_hand.hosts.count)
        meter.gauge(metrics.TRIGGERER_UNACKNOWLEDGED, lambda: len(self._reporter.unacknowledged))

    def _detail(self) -> dict[str, Any]:
        return {**self.vitals.detail, "capacity": self._capacity, "queues": self._queues, "running": self._in_hand.count}

    # -- beats

    def _beat(self) -> Beat:
        epochs = [*self._in_hand.epochs, *self._reporter.unacknowledged]
        return Beat(state=self._state, epochs=epochs, detail=self._detail(), heard_at=self._heard_at, asks=self._claims.asks)

    def _beat_answered(self, answer: BeatAnswer, until: float) -> None:
        self._lease.beat()
        self._heard_at = self._heard_at if answer.at is None else answer.at
        self._in_hand.stop(answer.kill)
        self._templates.lease(until)
        if self._frozen and self._presence.holds:
            self._frozen = False
            self._in_hand.hosts.go_on()
        if not self._frozen:
            self._in_hand.hosts.look()
        self._templates.end_idle()
        reap_adopted(OwnedProcess.pids)
        if answer.state == "draining":
            self._told_to_drain()

    def _lapsed(self) -> None:
        """R-CS7: from here on the triggers may be others', or nobody counts. Until somebody says which, none may go on: templates
        have stopped their processes, each by itself.
        """
        self._frozen = True
        log.warning("triggers are frozen until the control plane answers", triggers=self._in_hand.count)

    def _lost(self) -> None:
        """R-CS7: the triggers are others', so none may go on here."""
        log.warning("ending all triggers", triggers=self._in_hand.count)
        self._in_hand.abandon()
        self._claiming.drop()

    # -- claims

    async def _run_claims(self, service_id: int) -> None:
        await self._in_hand.hosts.gone()  # of a registration before: no trigger runs twice
        await self._claims.run(service_id)

    def _claim_answered(self, answer: TriggersAnswer) -> None:
        if self._presence.holds:
            self._in_hand.accept(answer.assignments)
        else:  # they may be others' by now; if not, nobody else would have them
            self._in_hand.decline(answer.assignments)
        match answer.state:
            case "lost":
                self._presence.lose()
            case "draining":
                self._told_to_drain()
            case _:
                pass

    def _told_to_drain(self) -> None:
        if self._state == "active":
            log.info("told to drain", triggerer=self.name)
            self._state = "draining"
            self._claims.polls.halt()
