"""Gives tries to workers that wait: behind ``POST /claim``.

A wake-up looks once at which queues have work and which tries are to be killed. The line is then served until its queues come back
empty. A worker whose ordinary slots are all busy waits for resumes only (R-DQ3). Only a resume or the sweep makes the API look for
such workers, so they cost nothing where nothing is deferred.

Schedulers know each worker whose claim waits, and may give it what their turns start (ADR 0067): the notification lists the tries.
If the notification is lost, a sweep finds them, or the last look of a claim whose wait has ended.

Every answer carries the worker's kills, but only a kill that came up during the wait ends the wait. Beats carry the earlier ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from evenflow.api import deferrals
from evenflow.api import observations as seen
from evenflow.api.long_poll import LongPoll, WaitingClaim, ends_wait
from evenflow.api.tokens import Tokens, TryToken
from evenflow.api.vault import Vault
from evenflow.api.versions import ServedVersion, Versions
from evenflow.core.callbacks import CALLBACK_DAG, CallbackOf
from evenflow.core.deferral import Resumed
from evenflow.core.executors import CELERY
from evenflow.core.limits import CLAIM_SLOTS, LEASE_S, SWEEP_S
from evenflow.core.meter import Meter
from evenflow.core.metrics import CLAIM_WAIT
from evenflow.core.model import TaskSpec
from evenflow.core.selection.order import DispatchClass
from evenflow.core.tracing import TracedRuns
from evenflow.killpoints import KillPoint, reached
from evenflow.store.db.connect import AsyncConn, AsyncPool
from evenflow.store.db.notify import DISPATCH, RESUMES
from evenflow.store.serving import callbacks, dispatch, executors
from evenflow.store.serving.dispatch import Place
from evenflow.telemetry.observing import observe
from evenflow.wire.messages import Assignment, Claim, ClaimAnswer


class _Given(msgspec.Struct):
    """The payload of notify/deliver. ``tries``: (epoch, run_key, task_index, try_number) of each; ``None``: the API reads them."""

    worker: int
    key: str  # of its claim
    tries: list[tuple[int, int, int, int]] | None = None


EMPTY_CLAIMS = 2  # empty claims of two workers prove a place empty; with one, its only tries may be to avoid that worker


class PushedQueues:
    """Queues whose tries a launcher sends to their executor. Claims get none of them, except that a worker which Celery hands tries
    asks for their resumes: these do not wait for a place behind all messages. What is known is one sweep old at most. That does no
    harm, because a worker that claims such a try just runs it.
    """

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}
        self._asked = -SWEEP_S

    async def kinds(self, conn: AsyncConn) -> Mapping[str, str]:
        """Returns the kinds of their executors, by queue."""
        if (now := asyncio.get_running_loop().time()) - self._asked >= SWEEP_S:
            self._asked = now
            self._kinds = {queue: to.kind for queue, to in (await executors.list_pushed(conn)).items()}
        return self._kinds


class Claims(LongPoll[Claim, ClaimAnswer]):
    channels = (DISPATCH, RESUMES)

    def __init__(
        self, pool: AsyncPool, versions: Versions, tokens: Tokens, vault: Vault, meter: Meter, traced: TracedRuns | None = None
    ) -> None:
        """``traced`` is None when no traces are told: tasks hear of none then."""
        super().__init__(pool, ClaimAnswer)
        self._traced = traced
        self.server: int | None = None  # id of this service, once registered: then turns may give tries to claims that wait here
        self._waiting_as: dict[tuple[int, str], dict[WaitingClaim[Claim, ClaimAnswer], None]] = {}  # by worker and key, in order
        self._deliveries: set[asyncio.Task[None]] = set()
        self._versions, self._tokens, self._vault, self._meter = versions, tokens, vault, meter
        self._known = dispatch.KnownRuns()
        self._pushed = PushedQueues()
        self._limited: set[int] = set()  # workers that get less than they ask for: their empty claims prove nothing

    def hear(self, word: str) -> None:
        """Answers a waiting claim with the tries that a turn has given to its worker."""
        given = msgspec.json.decode(word, type=_Given)
        waiting = next(iter(self._waiting_as.get((given.worker, given.key), ())), None)
        if waiting is None:
            self._wakes[DISPATCH] += 1  # its claim may be about to join the line
            return
        delivery = asyncio.create_task(self._deliver(waiting, given), name="delivery")
        self._deliveries.add(delivery)
        delivery.add_done_callback(self._deliveries.discard)

    def _join(self, waiting: WaitingClaim[Claim, ClaimAnswer]) -> None:
        super()._join(waiting)
        self._waiting_as.setdefault(_name(waiting.claim), {})[waiting] = None

    def _leave(self, waiting: WaitingClaim[Claim, ClaimAnswer]) -> None:
        super()._leave(waiting)
        same = self._waiting_as[_name(waiting.claim)]  # a worker without an answer sends the same claim again
        del same[waiting]
        if not same:
            del self._waiting_as[_name(waiting.claim)]

    async def _deliver(self, waiting: WaitingClaim[Claim, ClaimAnswer], given: _Given) -> None:
        try:
            async with self._pool.connection() as conn:
                if given.tries is None:
                    answer = await self._attempt_for(conn, waiting)
                else:
                    tries = await dispatch.read_given(conn, given.tries, self._known)
                    for _ in tries:
                        self._meter.observe(CLAIM_WAIT, 0.0)
                    answer = ClaimAnswer(assignments=await self._answered(conn, tries))
            if ends_wait(answer):
                waiting.give(answer)
        except Exception as error:  # the next sweep finds them
            observe(seen.work_not_found(str(error)))

    async def _sweep(self, line: Sequence[WaitingClaim[Claim, ClaimAnswer]]) -> None:
        claims = {_name(waiting.claim): waiting for waiting in line if waiting.claim.slots}
        if not claims or self.server is None:
            return
        async with self._pool.connection() as conn:
            for claim in await dispatch.find_given(conn, claims):
                waiting = claims[claim]
                if not waiting.answer.done():  # what has ended meanwhile is not in it: nothing more comes under this key
                    waiting.give(await self._attempt_for(conn, waiting))

    async def _last_look(self, claim: Claim, answer: ClaimAnswer) -> ClaimAnswer:
        """The claim stops waiting, before its worker may claim again. Raises the database's error if it cannot be withdrawn."""
        if self.server is None or not claim.slots:
            return answer
        async with self._pool.connection() as conn:
            if await dispatch.withdraw(conn, service_id=claim.service_id, claim_key=claim.request_key, api=self.server):
                return answer
            asked_again = msgspec.structs.replace(claim, slots=0, resume_slots=0)  # the worker takes nothing more
            return await self._attempt(conn, asked_again)

    def _concerns(self, news: set[str], claim: Claim) -> bool:
        return bool(claim.slots) or RESUMES in news

    async def _serve_line(self, line: Sequence[WaitingClaim[Claim, ClaimAnswer]]) -> None:
        if not line:
            return
        looks_at = {waiting: _places(waiting.claim) for waiting in line}
        places: set[Place] = set().union(*looks_at.values())
        workers = {waiting.claim.service_id for waiting in line}
        kills_of: dict[int, list[int]] = {}
        async with self._pool.connection() as conn:
            if len(line) > EMPTY_CLAIMS:  # for fewer claims, a look would cost what it saves
                queues = {place.queue for place in places}
                found, kills = await dispatch.find_waiting(conn, queues=queues, workers=workers)
                places = found | {place for place in places if place.sent}  # a look would miss what was sent
                for worker, epoch in kills:
                    kills_of.setdefault(worker, []).append(epoch)
            chances = dict.fromkeys(places, EMPTY_CLAIMS)
            for waiting, wanted in looks_at.items():
                claim = waiting.claim
                answer = ClaimAnswer(kill=kills_of.get(claim.service_id, []))
                if not waiting.answer.done() and any(chances.get(place) for place in wanted):
                    answer = await self._attempt_for(conn, waiting)
                    if not ends_wait(answer) and claim.service_id not in self._limited:
                        for place in chances.keys() & wanted:
                            chances[place] -= 1
                if ends_wait(answer) or not set(waiting.first.kill).issuperset(answer.kill):
                    waiting.give(answer)

    async def _attempt(self, conn: AsyncConn, claim: Claim) -> ClaimAnswer:
        reached(KillPoint.CLAIM_ASKED)
        result = await self._claimed(conn, claim)
        (self._limited.add if result.limited else self._limited.discard)(claim.service_id)
        match result.worker_state:
            case "active":
                answer = ClaimAnswer(kill=result.kill, limited=bool(claim.epochs) and result.limited, busy=list(result.busy))
                if not result.tries:
                    return answer
                reached(KillPoint.CLAIM_COMMITTED)
                for waited_s in result.waited_s:
                    self._meter.observe(CLAIM_WAIT, waited_s)
                answer.assignments = await self._answered(conn, result.tries)
                return answer
            case "draining":
                return ClaimAnswer(kill=result.kill, state="draining")
            case _:
                return ClaimAnswer(state="lost")

    async def _claimed(self, conn: AsyncConn, claim: Claim) -> dispatch.ClaimResult:
        asker: dict[str, Any] = {
            "service_id": claim.service_id,
            "claim_key": claim.request_key,
            "lease_s": LEASE_S,
            "known": self._known,
        }
        queues = dict.fromkeys(claim.queues)
        if claim.epochs:
            return await dispatch.claim_handed(conn, claim.epochs, queues=queues, **asker)
        pushed = await self._pushed.kinds(conn)
        resumes = min(_resumes(claim), CLAIM_SLOTS)
        if claim.handed:
            sent = [queue for queue in queues if pushed.get(queue) == CELERY]
            return await dispatch.claim_handed(conn, [], resumes=resumes, queues=sent, **asker)
        return await dispatch.claim(
            conn,
            slots=min(claim.slots, CLAIM_SLOTS),
            resumes=resumes,
            queues=[queue for queue in queues if queue not in pushed],
            api=self.server if claim.slots and claim.wait_s > 0 and not self._closed else None,
            **asker,
        )

    async def _answered(self, conn: AsyncConn, tries: Collection[dispatch.ClaimedTry]) -> list[Assignment]:
        made = await self.assignments(conn, tries)
        reached(KillPoint.CLAIM_ANSWERED)
        return made

    async def assignments(self, conn: AsyncConn, tries: Collection[dispatch.ClaimedTry]) -> list[Assignment]:
        """Returns all that workers need to run these tries."""
        versions = await self._versions.of(conn, {row.version_key for row in tries})
        own = [row.run_key for row in tries if row.dag_id == CALLBACK_DAG]
        calls = await callbacks.read_claimed(conn, own) if own else {}
        called = await self._versions.of(conn, {call.version_key for call in calls.values()}) if own else {}
        out = []
        for row in tries:
            version = versions[row.version_key]
            task = version.tasks[row.task_index]
            token = TryToken(row.epoch, row.run_key, row.task_index, row.map_index, row.try_number)
            out.append(
                Assignment(
                    epoch=row.epoch,
                    token=self._tokens.for_try(token),
                    task_id=task.task_id,
                    max_tries=task.retries + 1,
                    operator=task.operator,
                    execution_timeout=task.execution_timeout,
                    reuse=task.reuse,
                    resources=task.resources,
                    resumed=None if row.resume is None else self._resumed(row, row.resume, task),
                    traceparent=self._traceparent(row),
                    **_of_run(row, version),
                )
            )
            if row.run_key in calls:
                call = calls[row.run_key]
                out[-1] = _calling(out[-1], call, called[call.version_key])
        return out

    def _traceparent(self, row: dispatch.ClaimedTry) -> str:
        if self._traced is None or row.dag_id == CALLBACK_DAG:
            return ""
        return self._traced.trace_of(row.run_key, row.traceparent).traceparent(row.epoch)

    def _resumed(self, row: dispatch.ClaimedTry, resume: dispatch.ClaimedResume, task: TaskSpec) -> Resumed:
        what = f"What task {task.task_id!r} in run {row.run_id!r} of DAG {row.dag_id!r} waited for"
        return deferrals.resumed(self._vault, row.run_key, resume, what, counts_waiting=task.execution_timeout_counts_waiting)


def _name(claim: Claim) -> tuple[int, str]:
    return claim.service_id, claim.request_key


def _of_run(row: dispatch.ClaimedTry | callbacks.ClaimedCall, version: ServedVersion) -> dict[str, Any]:
    """Returns the fields of an assignment that name the run, the instance and the code."""
    return {
        "dag_id": row.dag_id,
        "run_id": row.run_id,
        "map_index": row.map_index,
        "try_number": row.try_number,
        "code_hash": version.code_hash,
        "file": version.file,
        "run_type": row.run_type,
        "params": row.params,
        "run_after": row.run_after.isoformat(),
        "logical_date": _iso(row.logical_date),
        "data_interval_start": _iso(row.data_interval_start),
        "data_interval_end": _iso(row.data_interval_end),
        "version_number": version.number,
        "default_timezone": version.default_timezone,
        "environment": version.environment,
        "map_length": row.map_length,
    }


def _calling(own: Assignment, call: callbacks.ClaimedCall, version: ServedVersion) -> Assignment:
    """Returns the assignment of a callback's try: its own token and timeout, and otherwise the fields of the task or run that
    calls.
    """
    task = None if call.task_index is None else version.tasks[call.task_index]
    return msgspec.structs.replace(
        own,
        task_id=task.task_id if task else "",
        max_tries=task.retries + 1 if task else 1,
        **_of_run(call, version),
        callback=CallbackOf(
            event=call.event,
            position=call.position,
            state=call.state,
            reason=call.reason,
            started_at=_iso(call.started_at),
            ended_at=_iso(call.ended_at),
            notifier=call.notifier,
        ),
    )


def _places(claim: Claim) -> set[Place]:
    """Returns the queues and classes in which a claim looks for work."""
    if claim.handed:
        return {Place(queue, DispatchClass.RESUME, sent=True) for queue in claim.queues}
    classes = [DispatchClass.RESUME] * bool(_resumes(claim)) + [DispatchClass.FIRST_START] * bool(claim.slots)
    return {Place(queue, wanted) for queue in claim.queues for wanted in classes}


def _resumes(claim: Claim) -> int:
    """Returns how many resumes the claim takes. None for a worker of an older release, which would begin them anew."""
    return 0 if claim.resume_slots is None else claim.slots + claim.resume_slots


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
