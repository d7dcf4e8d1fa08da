"""Routes about tries: workers claim, report and send logs; a running try pushes, pulls and reports its progress."""

from __future__ import annotations

import msgspec

from evenflow.api import limits
from evenflow.api.claims import Claims
from evenflow.api.elements import ElementCache
from evenflow.api.execution.endpoint import Call, try_over
from evenflow.api.inbox import Inbox
from evenflow.api.logs.store import Chunk, LogName, LogStore, writer_of
from evenflow.api.refusals import CannotStore, Refused, too_large
from evenflow.api.reports import checked_length, checked_object, json_text, store
from evenflow.api.tokens import Tokens, TriggerToken, TryToken
from evenflow.api.vault import Vault
from evenflow.api.versions import Versions
from evenflow.core.json_values import flaw_of
from evenflow.core.limits import CLAIM_SLOTS, MAX_INLINE_XCOM, MAX_MAP_LENGTH, MAX_NAME_CHARS
from evenflow.core.model import UNMAPPED
from evenflow.errors import NotAllowed, XComTooLarge
from evenflow.killpoints import KillPoint, reached
from evenflow.store.db.connect import AsyncConn, AsyncPool
from evenflow.store.serving import dispatch, xcom
from evenflow.wire.messages import (
    REFUSED_LOG,
    Claim,
    ClaimAnswer,
    LogChunk,
    Logs,
    LogsAnswer,
    Progress,
    Reports,
    ReportsAnswer,
    XComPull,
    XComPush,
    XComValue,
)
from evenflow.wire.questions import AskElement, AskPriorRun, Element, PriorRun


class TryRoutes:
    def __init__(
        self, pool: AsyncPool, inbox: Inbox, tokens: Tokens, versions: Versions, claims: Claims, logs: LogStore, vault: Vault
    ) -> None:
        self._pool, self._inbox, self._tokens, self._versions, self._claims = pool, inbox, tokens, versions, claims
        self._logs, self._vault = logs, vault
        self._elements = ElementCache()

    async def claim(self, call: Call) -> ClaimAnswer:
        message: Claim = call.message
        call.speaks_for(message.service_id)
        slots, resume_slots = message.slots, message.resume_slots or 0
        if min(slots, resume_slots) < 0 or slots + resume_slots < 1 or not message.queues:
            raise Refused(422, "bad_value", "A claim needs at least one slot, and at least one queue.")
        if not (message.request_key.isascii() and 0 < len(message.request_key) <= limits.CLAIM_KEY):
            raise Refused(422, "bad_value", f"A claim's request_key is 1 to {limits.CLAIM_KEY} characters of ASCII.")
        if len(message.epochs) > CLAIM_SLOTS:
            raise Refused(422, "bad_value", f"{len(message.epochs):,} tries in one claim; ask for at most {CLAIM_SLOTS:,}.")
        call.within_scope(message.queues)
        call.within_try(message.epochs)
        return await self._claims.claim(message, hung_up=call.hung_up)

    async def report(self, call: Call) -> ReportsAnswer:
        message: Reports = call.message
        if len(message.reports) > limits.REPORTS:
            raise Refused(413, "too_large", f"{len(message.reports):,} reports in one batch; send at most {limits.REPORTS:,}.")
        return await store(self._inbox, self._tokens, self._vault, message.reports)

    async def log(self, call: Call) -> LogsAnswer:
        message: Logs = call.message
        tokens = [self._writer(chunk) for chunk in message.chunks]
        tries = {(t.epoch, t.run_key, t.task_index, t.map_index) for t in tokens if t is not None}
        good: list[tuple[int, Chunk]] = []
        if tries:
            async with self._pool.connection() as conn:
                current = await dispatch.find_current(conn, sorted(tries))
                good = [
                    (position, Chunk(await self._log_name(conn, token), _writer_of(token), chunk.offset, chunk.data, chunk.lost))
                    for position, (token, chunk) in enumerate(zip(tokens, message.chunks, strict=True))
                    if token is not None and token.epoch in current and chunk.offset >= 0
                ]
        offsets = [REFUSED_LOG] * len(message.chunks)
        stored = await self._logs.append([chunk for _, chunk in good])
        for (position, _), offset in zip(good, stored.offsets, strict=True):
            offsets[position] = offset
        reached(KillPoint.LOGS_STORED)
        if stored.failure:
            raise CannotStore(stored.failure, offsets)
        return LogsAnswer(offsets=offsets)

    async def push(self, call: Call) -> None:
        message: XComPush = call.message
        if not 1 <= len(message.key) <= MAX_NAME_CHARS:
            raise Refused(422, "bad_value", f"An XCom key has 1 to {MAX_NAME_CHARS} characters, not {len(message.key)}.")
        what = f"The XCom {message.key!r}"
        if len(message.value) > MAX_INLINE_XCOM:
            raise XComTooLarge(what, len(message.value), MAX_INLINE_XCOM)
        async with self._pool.connection() as conn:
            if not await xcom.push(
                conn,
                epoch=call.of_try.epoch,
                key=message.key,
                value=json_text(message.value, what),
                secret=message.secret,
                length=checked_length(message.length, what),
                stored=checked_object(message.stored, call.of_try.epoch, what),
            ):
                raise try_over()

    async def pull(self, call: Call) -> XComValue:
        message: XComPull = call.message
        async with self._pool.connection() as conn:
            run_key, run, version = await self._versions.of_subject(conn, call.of_try.run_key)
            if message.run_id is not None and message.run_id != run.run_id:
                other = await xcom.find_run(conn, dag_id=run.dag_id, run_id=message.run_id)
                if other is None:
                    raise Refused(404, "not_found", f"DAG {run.dag_id!r} has no run {message.run_id!r} to pull from.")
                run_key, (run, version) = other, await self._versions.of_run(conn, other)
            task_index = version.index_of.get(message.task_id)
            if task_index is None:
                raise Refused(404, "not_found", f"DAG {run.dag_id!r} has no task {message.task_id!r} to pull from.")
            if message.map_index is None and version.mapped[task_index]:
                listed = await xcom.pull_mapped(
                    conn,
                    epoch=call.of_try.epoch,
                    run_key=run_key,
                    task_index=task_index,
                    key=message.key,
                    limit=limits.XCOM_LIST,
                )
                if listed is None:
                    raise try_over()
                value, items, secret = listed
                if value is None:
                    raise too_large(f"The list of all values {message.key!r} of task {message.task_id!r}", limits.XCOM_LIST)
            else:
                map_index = UNMAPPED if message.map_index is None else message.map_index
                found = await xcom.pull_one(
                    conn,
                    epoch=call.of_try.epoch,
                    run_key=run_key,
                    task_index=task_index,
                    map_index=map_index,
                    key=message.key,
                )
                if found is None:
                    raise try_over()
                value, stored, secret = found
                if value is None:
                    return XComValue(found=False)
                return XComValue(found=True, value=value.encode(), stored=stored, secret=secret)
        names = {int(place): name for place, name in items.items()}
        return XComValue(found=True, value=value.encode(), stored_items=names, secret=secret)

    async def element(self, call: Call) -> Element:
        message: AskElement = call.message
        if not 0 <= message.index <= MAX_MAP_LENGTH:
            raise Refused(422, "bad_value", f"An index is 0 to {MAX_MAP_LENGTH:,}, not {message.index}.")
        run_key = call.of_try.run_key
        async with self._pool.connection() as conn:
            run, version = await self._versions.of_run(conn, run_key)
            task_index = version.index_of.get(message.task_id)
            if task_index is None:
                raise Refused(404, "not_found", f"DAG {run.dag_id!r} has no task {message.task_id!r} to map over.")
            pushed = await self._elements.of(conn, epoch=call.of_try.epoch, run_key=run_key, task_index=task_index, key=message.key)
        if pushed is None:
            raise try_over()
        return Element(length=len(pushed), map_index=pushed[message.index] if message.index < len(pushed) else None)

    async def prior_run(self, call: Call) -> PriorRun:
        message: AskPriorRun = call.message
        async with self._pool.connection() as conn:
            run_key, _, _ = await self._versions.of_subject(conn, call.of_try.run_key)
            found = await xcom.find_prior(
                conn, run_key=run_key, task_id=message.task_id, map_index=message.map_index, key=message.key
            )
        return PriorRun(run_id=found)

    async def progress(self, call: Call) -> None:
        message: Progress = call.message
        payload = msgspec.json.encode(message)
        if len(payload) > limits.PROGRESS:
            raise too_large("The progress", limits.PROGRESS)
        if (flaw := flaw_of(message.detail)) is not None:
            raise Refused(422, "bad_value", f"The detail of the progress {flaw}.")
        async with self._pool.connection() as conn:
            if not await dispatch.write_progress(conn, epoch=call.of_try.epoch, payload=payload.decode()):
                raise try_over()

    def _writer(self, chunk: LogChunk) -> TryToken | TriggerToken | None:
        try:
            token = self._tokens.verify(chunk.token)
        except NotAllowed:
            return None
        return token if isinstance(token, TryToken | TriggerToken) else None

    async def _log_name(self, conn: AsyncConn, token: TryToken | TriggerToken) -> LogName:
        run, version = await self._versions.of_run(conn, token.run_key)
        task_id = version.tasks[token.task_index].task_id
        return LogName(run.dag_id, run.run_id, task_id, token.map_index, token.try_number)


def _writer_of(token: TryToken | TriggerToken) -> str:
    return writer_of(token.epoch, token.claim if isinstance(token, TriggerToken) else 0)
