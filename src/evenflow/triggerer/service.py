"""The triggerer as a service: it registers, beats, claims and runs triggers, and drains or stops in order."""

from __future__ import annotations

from typing import Any

from evenflow.core import metrics
from evenflow.errors import SettingsError
from evenflow.membership.claiming_service import ClaimingService
from evenflow.membership.service import Member
from evenflow.telemetry.observing import observe
from evenflow.triggerer import observations as seen
from evenflow.triggerer.claims import TriggerPolls
from evenflow.triggerer.hosts import Hosts
from evenflow.triggerer.in_hand import TriggersInHand
from evenflow.triggerer.questions import Questions
from evenflow.triggerer.reporter import TriggerReporter
from evenflow.wire.messages import Beat, BeatAnswer
from evenflow.wire.triggers import TriggersAnswer

HOST_PROCESS = "evenflow.triggerer.host_process"
AIRFLOW_PROCESS = "evenflow.airflow.waiting.host_process"


class TriggererService(ClaimingService):
    """Runs up to ``capacity`` triggers of ``queues`` at once; without names, of all queues."""

    kind = "triggerer"
    template_module = HOST_PROCESS
    foreign_module = AIRFLOW_PROCESS
    code_folder = "trigger-code"  # separate, because a worker of this home prunes code that no try uses

    def __init__(self, member: Member, *, capacity: int, queues: list[str]) -> None:
        if capacity < 1:
            raise SettingsError(f"Triggerer {member.name!r} has a capacity of {capacity}; it needs at least one.")
        super().__init__(member)
        self._capacity, self._queues = capacity, queues
        self._frozen = False
        self._heard_at = 0.0  # by the database's clock

    def _equip(self) -> tuple[TriggerReporter, TriggerPolls]:
        meter, masker, templates = self.health.meter, self._masker, self._templates
        self._questions = questions = Questions(self._client)
        self._reporter = TriggerReporter(self._client, lambda seconds: meter.observe(metrics.EVENT_SECONDS, seconds))
        self._in_hand = TriggersInHand(
            self._capacity,
            lambda outcomes: Hosts(templates, questions, outcomes, meter, masker),
            self._reporter,
            self._logs,
            masker,
            meter,
        )
        self._claims = TriggerPolls(self._client, self._queues, self._in_hand, self._claim_answered)
        self._measure()
        return self._reporter, self._claims

    async def _rid(self) -> None:
        """Gives its triggers back, which continue elsewhere at once."""
        await self._in_hand.give_back()

    async def _over(self) -> None:
        await self._in_hand.hosts.gone()

    async def _end(self) -> None:
        await super()._end()
        self._questions.close()

    def _measure(self) -> None:
        meter, in_hand = self.health.meter, self._in_hand
        meter.gauge(metrics.TRIGGERER_CAPACITY, lambda: self._capacity)
        meter.gauge(metrics.TRIGGERER_TRIGGERS, lambda: in_hand.count)
        meter.gauge(metrics.TRIGGERER_HOSTS, lambda: in_hand.hosts.count)
        meter.gauge(metrics.TRIGGERER_UNACKNOWLEDGED, lambda: len(self._reporter.unacknowledged))

    def _detail(self) -> dict[str, Any]:
        return {**self.health.detail, "capacity": self._capacity, "queues": self._queues, "running": self._in_hand.count}

    # -- beats

    def _beat(self) -> Beat:
        epochs = [*self._in_hand.epochs, *self._reporter.unacknowledged]
        return Beat(state=self._state, epochs=epochs, detail=self._detail(), heard_at=self._heard_at, asks=self._claims.asks)

    def _revoke(self, answer: BeatAnswer) -> None:
        self._heard_at = self._heard_at if answer.at is None else answer.at
        self._in_hand.stop(answer.kill)
        self._in_hand.share_out(answer.surplus)

    def _go_on(self, answer: BeatAnswer) -> None:
        if self._frozen and self._presence.holds:
            self._frozen = False
            self._in_hand.hosts.go_on()
        if not self._frozen:
            self._in_hand.hosts.look()

    def _lapsed(self) -> None:
        """R-CS7: from here on the triggers may belong to others, or leases may not be counted. Until the control plane says which,
        none may continue: templates have stopped their processes, each by itself.
        """
        self._frozen = True
        observe(seen.triggers_frozen(self._in_hand.count))

    def _lost(self) -> None:
        observe(seen.triggers_ended(self._in_hand.count))
        super()._lost()

    def _abandon(self) -> None:
        self._in_hand.abandon()

    # -- claims

    async def _claim(self, service_id: int) -> None:
        await self._in_hand.hosts.gone()  # of an earlier registration: no trigger runs twice
        await self._claims.run(service_id)

    def _claim_answered(self, answer: TriggersAnswer) -> None:
        if self._presence.holds:
            self._in_hand.accept(answer.assignments)
        else:  # they may be others' by now; if not, no triggerer has them
            self._in_hand.decline(answer.assignments)
        self._heed(answer.state)
