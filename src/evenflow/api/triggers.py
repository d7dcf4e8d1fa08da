"""Gives triggers to triggerers that wait, behind ``POST /triggers/claim``, and stores what the triggers report.

A wake-up looks once at which queues have triggers; then waiting claims for one of these queues are served.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from evenflow.api import deferrals, limits
from evenflow.api.long_poll import LongPoll, WaitingClaim, ends_wait
from evenflow.api.refusals import too_large
from evenflow.api.tokens import Tokens, TriggerToken
from evenflow.api.vault import Vault
from evenflow.api.versions import Versions
from evenflow.core.limits import CLAIM_SLOTS, LEASE_S, MAX_DEFERRED_BYTES, MAX_REASON
from evenflow.core.meter import Meter
from evenflow.core.metrics import TRIGGER_WAIT
from evenflow.core.people.approvals import ApprovalAnswer, words_of
from evenflow.errors import EvenflowError, KeyNotKnownYet, NotAllowed, SecretsError, XComError
from evenflow.killpoints import KillPoint, reached
from evenflow.store.db.connect import AsyncConn, AsyncPool, Row
from evenflow.store.db.notify import TRIGGERS
from evenflow.store.serving import triggers
from evenflow.store.serving.triggers import ClaimedTrigger, TriggerKey
from evenflow.wire.triggers import (
    ClaimTriggers,
    TriggerAssignment,
    TriggerReport,
    TriggerReportsAnswer,
    TriggersAnswer,
)


class EventPayload(msgspec.Struct, omit_defaults=True):
    """``report.payload`` of an event: its deferral, and the purpose for which its task resumes."""

    task_index: int
    map_index: int
    claim: int
    purpose: str  # event, failed
    event: str | None = None  # sealed, in base64
    error: str | None = None
    actor: str | None = None  # of an answer: the person, and what the person chose
    choice: str | None = None


class _EventRow(msgspec.Struct):
    run_key: int
    epoch: int
    age_s: float
    payload: EventPayload


class TriggerClaims(LongPoll[ClaimTriggers, TriggersAnswer]):
    channels = (TRIGGERS,)

    def __init__(self, pool: AsyncPool, versions: Versions, tokens: Tokens, vault: Vault, meter: Meter) -> None:
        super().__init__(pool, TriggersAnswer)
        self._versions, self._tokens, self._vault, self._meter = versions, tokens, vault, meter

    async def _serve_line(self, line: Sequence[WaitingClaim[ClaimTriggers, TriggersAnswer]]) -> None:
        if not line:
            return
        async with self._pool.connection() as conn:
            queues = await triggers.find_queues(conn)
            for waiting in line:
                wanted = waiting.claim.queues
                if not waiting.answer.done() and queues and (not wanted or not queues.isdisjoint(wanted)):
                    answer = await self._attempt_for(conn, waiting)
                    if ends_wait(answer):
                        waiting.give(answer)

    async def _attempt(self, conn: AsyncConn, claim: ClaimTriggers) -> TriggersAnswer:
        queues = set(claim.queues) or await triggers.find_queues(conn)
        result = await triggers.claim(
            conn,
            service_id=claim.service_id,
            claim_key=claim.request_key,
            capacity=min(claim.capacity, CLAIM_SLOTS),
            queues=queues,
            lease_s=LEASE_S,
        )
        if result.triggers:
            reached(KillPoint.TRIGGERS_CLAIMED)
        match result.state:
            case "active":
                return TriggersAnswer(assignments=await self._assignments(conn, result.triggers))
            case "draining":
                return TriggersAnswer(state="draining")
            case _:
                return TriggersAnswer(state="lost")

    async def _assignments(self, conn: AsyncConn, claimed: Sequence[ClaimedTrigger]) -> list[TriggerAssignment]:
        """Returns all that a triggerer needs to run these. If no key opens one, its task resumes, fails and says so."""
        versions = await self._versions.of(conn, {row.version_key for row in claimed})
        out, lost = [], []
        for row in claimed:
            version = versions[row.version_key]
            try:
                what = f"What a try of run {row.run_id!r} of DAG {row.dag_id!r} waits for"
                defer = deferrals.opened_deferral(self._vault, row.run_key, what, row.sealed)
            except SecretsError as error:
                payload = EventPayload(row.task_index, row.map_index, row.claim, "failed", error=str(error)[:MAX_REASON])
                lost.append(_EventRow(row.run_key, row.epoch, 0.0, payload))
                continue
            self._meter.observe(TRIGGER_WAIT, max(0.0, row.waited_s))
            token = TriggerToken(row.epoch, row.run_key, row.task_index, row.map_index, row.claim, row.try_number)
            out.append(
                TriggerAssignment(
                    epoch=row.epoch,
                    claim=row.claim,
                    token=self._tokens.for_trigger(token),
                    path=row.path,
                    kwargs=defer.trigger_kwargs,
                    secrets=defer.secrets,
                    code_hash=version.code_hash,
                    file=version.file,
                    default_timezone=version.default_timezone,
                    environment=version.environment,
                    dag_id=row.dag_id,
                    run_id=row.run_id,
                    task_id=version.tasks[row.task_index].task_id,
                    map_index=row.map_index,
                    try_number=row.try_number,
                    deferred_s=row.deferred_s,
                    failures=row.failures,
                )
            )
        if lost:
            await triggers.insert_events(conn, msgspec.json.encode(lost).decode())
        return out


async def store(pool: AsyncPool, tokens: Tokens, vault: Vault, reports: Sequence[TriggerReport]) -> TriggerReportsAnswer:
    """Stores all reports that can be stored, in one transaction, and says why the others cannot.

    A trigger that has failed is given back, to be claimed after a pause. Its last allowed failure is an event of its own.
    """
    events: list[_EventRow] = []
    failed: dict[TriggerKey, TriggerReport] = {}
    given_back: list[TriggerKey] = []
    refused: dict[int, str] = {}
    for position, report in enumerate(reports):
        try:
            key = _key(tokens, report)
            if report.event is not None:
                payload = EventPayload(
                    key.task_index, key.map_index, key.claim, "event", event=_sealed(vault, key.run_key, report.event)
                )
                events.append(_event(key, report, payload))
            elif report.given_back:
                given_back.append(key)
            else:
                failed[key] = report
        except KeyNotKnownYet:  # as in the reports of tries
            raise
        except EvenflowError as error:
            refused[position] = str(error)
    async with pool.connection() as conn:
        if failed:
            counts = await triggers.record_failures(
                conn,
                list(failed),
                first_s=limits.TRIGGER_PAUSE,
                longest_s=limits.TRIGGER_LONGEST_PAUSE,
                worked_s=limits.TRIGGER_WORKED,
            )
            for key, report in failed.items():
                if counts.get(key.epoch, 0) >= limits.TRIGGER_FAILURES:
                    why = f"its trigger failed {counts[key.epoch]} times in a row, the last time: {report.error or 'unknown'}"
                    payload = EventPayload(
                        key.task_index, key.map_index, key.claim, "failed", error=why.replace("\0", "")[:MAX_REASON]
                    )
                    events.append(_event(key, report, payload))
        if given_back:
            await triggers.give_back(conn, given_back)
        if events:
            await triggers.insert_events(conn, msgspec.json.encode(events).decode())
    reached(KillPoint.EVENTS_STORED)
    return TriggerReportsAnswer(refused=list(refused.values()), refused_at=list(refused))


async def answer(conn: AsyncConn, vault: Vault, waiting: Row, said: ApprovalAnswer) -> None:
    """Stores a person's answer as an event, in the caller's transaction; the caller then wakes schedulers. The task gets its JSON
    as text, so nothing in it can select a type.
    """
    event = _sealed(vault, waiting["run_key"], msgspec.json.encode(said.as_event()), "The answer")
    payload = EventPayload(
        waiting["task_index"], waiting["map_index"], 0, "event", event=event, actor=said.answered_by, choice=words_of(said.choice)
    )
    await triggers.put_events(conn, msgspec.json.encode([_EventRow(waiting["run_key"], waiting["epoch"], 0.0, payload)]).decode())


def _key(tokens: Tokens, report: TriggerReport) -> TriggerKey:
    token = tokens.verify(report.token)
    if not isinstance(token, TriggerToken):
        raise NotAllowed("A report about a trigger needs the token of its claim.")
    return token


def _event(key: TriggerKey, report: TriggerReport, payload: EventPayload) -> _EventRow:
    return _EventRow(key.run_key, key.epoch, min(max(report.age_s, 0.0), limits.REPORT_AGE), payload)


def _sealed(vault: Vault, run_key: int, event: bytes, what: str = "The event of a trigger") -> str:
    """Returns an event that is sealed for the database. Raises :class:`XComError` for what is not JSON."""
    if len(event) > MAX_DEFERRED_BYTES:
        raise too_large(what, MAX_DEFERRED_BYTES)
    try:
        value = msgspec.json.decode(event)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise XComError(f"{what} is not JSON: {error}.") from None
    deferrals.check_kept(what, value)
    return deferrals.sealed_text(vault, run_key, value)
