"""The connection of Airflow's Task Execution API to Evenflow's own execution API: questions come from a thread, and the handlers of
that API answer them in the event loop.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec

from evenflow.api import deferrals
from evenflow.api.execution.endpoint import Call, Handler, try_over
from evenflow.api.execution.given_secrets import GivenSecrets
from evenflow.api.execution.tries import TryRoutes
from evenflow.api.refusals import refusal
from evenflow.api.vault import Vault
from evenflow.core.ending import Ending
from evenflow.core.limits import MAX_XCOM_BYTES
from evenflow.errors import ApiRefused, EvenflowError, XComTooLarge
from evenflow.sdk.secrets.masking import texts_in
from evenflow.sdk.xcomarg import RETURN_VALUE
from evenflow.store.db.connect import AsyncPool
from evenflow.store.serving import try_records
from evenflow.wire.large_values import NULL, LargeValues
from evenflow.wire.messages import Message, XComPull, XComPush, XComValue
from evenflow.wire.questions import QUESTIONS
from evenflow.wire.secrets import SHOWN, secrets_of, shown

T = TypeVar("T")
_DRAFT = "draft"


@dataclass(frozen=True, slots=True)
class TryHandlers:
    """Handlers of the execution API that a try may call: ``answers`` by the name of the question."""

    answers: Mapping[str, Handler]
    tries: TryRoutes
    values: LargeValues
    pool: AsyncPool
    vault: Vault


class HandlerChannel:
    """The channel of one request; also the draft of its try's ending, which the database keeps until the try ends. ``call`` is the
    request, whose token and caller each question has.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, handlers: TryHandlers, call: Call) -> None:
        self._loop, self._handlers, self._call = loop, handlers, call

    # -- a channel of the SDK's

    def ask(self, question: str, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            message: Message = msgspec.convert(arguments, QUESTIONS[question][0])
        except msgspec.ValidationError as error:
            raise ApiRefused(422, f"The question {question!r} cannot be read: {error}.") from None
        found: dict[str, Any] = msgspec.to_builtins(self._await(self._asked(question, message)))
        return found

    def xcom_pull(self, task_id: str, key: str, map_index: int | None, run_id: str | None = None) -> tuple[bool, Any]:
        wanted = XComPull(task_id=task_id, key=key, map_index=map_index, run_id=run_id)
        value = self._await(self._pulled(wanted))
        return (False, None) if value is None else (True, json.loads(value))

    def xcom_push(self, key: str, value: Any) -> None:
        self._await(self._pushed(key, json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()))

    def progress(self, label: str, done: int, total: int, detail: dict[str, Any]) -> None:
        """Does nothing: Airflow's tasks have no progress."""

    # -- a draft

    def skip(self, tasks: Iterable[int]) -> None:
        self._await(self._write_draft(skipped=sorted({*self.skipped(), *tasks})))

    def skipped(self) -> list[int]:
        return list(self._await(self._read_draft()).get("skipped", []))

    def set_question(self, question: str) -> None:
        sealed = deferrals.sealed_text(self._handlers.vault, self._call.of_try.run_key, question)
        self._await(self._write_draft(question=sealed))

    def question(self) -> str | None:
        sealed = self._await(self._read_draft()).get("question")
        return None if sealed is None else deferrals.opened_text(self._handlers.vault, self._call.of_try.run_key, sealed)

    def set_result(self, value: bytes | None, length: int | None = None) -> None:
        self._await(self._pushed(RETURN_VALUE, value or NULL, length))

    def result(self) -> bytes | None:
        """Returns None: a result is stored when it is said."""
        return None

    def length(self) -> int | None:
        return None

    # -- in the event loop

    async def shown(self, ending: Ending) -> Ending:
        """Returns the ending as a worker would say it: people see no secret in it, and a trigger's log masks its own."""
        masker = (await self._given()).masker
        if not masker:
            return ending
        produced = [
            replace(change, extra=masker.mask_value(change.extra), uri=masker.mask_text(change.uri)) for change in ending.produced
        ]
        reason = ending.reason and masker.mask_text(ending.reason)
        if (defer := ending.defer) is not None:
            defer = replace(defer, secrets=masker.found_in(msgspec.json.encode([defer.trigger_kwargs, defer.kwargs])))
        return replace(ending, produced=produced, reason=reason, defer=defer)

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        """Raises :class:`ApiRefused` for what the caller has caused, and anything else as it is."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except EvenflowError as error:
            told = refusal(error)
            if told.status >= 500:
                raise
            raise ApiRefused(told.status, told.message) from error

    def _of(self, message: Message) -> Call:
        return Call(self._call.token, self._call.bearer, message, {}, self._call.receive)

    async def _asked(self, question: str, message: Message) -> Message | bytes | None:
        if isinstance(message, SHOWN):
            message = shown(message, (await self._given()).masker)
        answer = await self._handlers.answers[question](self._of(message))
        await self._learn(secrets_of(question, message, answer))
        return answer

    async def _pulled(self, wanted: XComPull) -> bytes | None:
        value: XComValue = await self._handlers.tries.pull(self._of(wanted))
        if not value.found:
            return None
        found = await self._handlers.values.fetch(value, f"The XCom {wanted.key!r} of task {wanted.task_id!r}")
        if value.secret:
            await self._learn(await asyncio.to_thread(lambda: texts_in(json.loads(found))))
        return found

    async def _pushed(self, key: str, value: bytes, length: int | None = None) -> None:
        values, what = self._handlers.values, f"The XCom {key!r}"
        if len(value) > MAX_XCOM_BYTES:
            raise XComTooLarge(what, len(value), MAX_XCOM_BYTES)
        secret = await asyncio.to_thread((await self._given()).are_in, value)
        message = XComPush(key=key, value=value, secret=secret, length=length)
        if values.is_large(value):
            stored = await values.store(self._call.of_try.epoch, value, what)
            message = XComPush(key=key, value=NULL, stored=stored, secret=secret, length=length)
        try:
            await self._handlers.tries.push(self._of(message))
        except EvenflowError:
            if message.stored is not None:
                await values.discard(message.stored)
            raise

    async def _given(self) -> GivenSecrets:
        sealed = (await self._read_draft()).get("given")
        return GivenSecrets(sealed and deferrals.opened_text(self._handlers.vault, self._call.of_try.run_key, sealed))

    async def _learn(self, secrets: list[str]) -> None:
        """Called before the client has them."""
        if secrets and (given := await self._given()).add(secrets):
            await self._write_draft(given=deferrals.sealed_text(self._handlers.vault, self._call.of_try.run_key, given.to_keep()))

    async def _write_draft(self, **said: Any) -> None:
        asker = self._call.of_try
        value = json.dumps({**await self._read_draft(), **said})
        async with self._handlers.pool.connection() as conn:
            if not await try_records.write_record(conn, asker, try_number=asker.try_number, kind=_DRAFT, value=value):
                raise try_over()

    async def _read_draft(self) -> dict[str, Any]:
        async with self._handlers.pool.connection() as conn:
            return await try_records.read_own(conn, self._call.of_try, kind=_DRAFT) or {}
