"""Checks authors' data in separate processes, with limits of time and memory.

A spec or a value that takes too long is then an error of its DAG. On the event loop it would silence this API server, and then the
next one that gets the request.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from evenflow.api import limits
from evenflow.api.judge_process import JudgedParams, JudgedSpec, ParamsQuestion
from evenflow.core.json_values import flaw_of
from evenflow.core.model import RunParamSpec
from evenflow.core.spec.params import resolve_params
from evenflow.errors import EvenflowError, ParamError
from evenflow.forking.exits import Exit, describe_exit
from evenflow.forking.frames import FRAME_LIMIT
from evenflow.forking.owned_child import OwnedChild
from evenflow.forking.owned_template import OwnedTemplate
from evenflow.forking.sandbox import own_environment

T = TypeVar("T")

MODULE = "evenflow.api.judge_process"


class NotJudged(EvenflowError):
    """A process that checks authors' data has not finished. The message says why, as the rest of a sentence."""


class Judge:
    """The first question starts its processes."""

    def __init__(self) -> None:
        self._template: OwnedTemplate | None = None
        self._templating = asyncio.Lock()
        self._at_once = asyncio.Semaphore(limits.JUDGED_AT_ONCE)

    async def close(self) -> None:
        if self._template is not None:
            await self._template.close()

    async def specs(self, texts: Sequence[str]) -> list[JudgedSpec]:
        """Returns for each spec its canonical form, or what is wrong with it. If the limits are exceeded, all are wrong."""
        if not texts:
            return []
        try:
            body = await self._ask("specs", msgspec.msgpack.encode(list(texts)), limits.JUDGE_SPECS)
        except NotJudged as error:
            return [JudgedSpec(error=f"What this file defines cannot be checked: {error}")]
        return msgspec.msgpack.decode(body, type=list[JudgedSpec])

    async def params(self, params: Mapping[str, RunParamSpec], given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the value of every parameter. Raises :class:`ParamError` for the first that does not fit or cannot be stored."""
        await asyncio.to_thread(_check_kept, given)
        if not any(param.schema for param in params.values()):
            return resolve_params(params, given)
        question = msgspec.msgpack.encode(ParamsQuestion(dict(params), dict(given)))
        try:
            body = await self._ask("params", question, limits.JUDGE_PARAMS)
        except NotJudged as error:
            raise ParamError(f"The parameters cannot be checked: {error}") from None
        judged = msgspec.msgpack.decode(body, type=JudgedParams)
        if judged.values is None:
            raise ParamError(judged.error, hint=judged.hint)
        return judged.values

    async def _ask(self, question: str, body: bytes, time_s: float) -> bytes:
        if len(body) >= FRAME_LIMIT:
            raise NotJudged(f"they have {len(body):,} bytes (limit {FRAME_LIMIT:,}).")
        async with self._at_once:
            template = await self._warm_template()
            judging = _Judging(body, time_s)
            child = judging.child = template.begin({"question": question}, judging)
            try:
                await asyncio.wait({judging.answer}, timeout=time_s)
            finally:
                child.send_signal(signal.SIGKILL)
            return await judging.answer

    async def _warm_template(self) -> OwnedTemplate:
        async with self._templating:
            if self._template is None or not self._template.alive:
                self._template = await OwnedTemplate.start(
                    MODULE, {}, env=own_environment(os.environ), load_timeout_s=limits.JUDGE_LOAD, memory_limit=limits.JUDGE_MEMORY
                )
            return self._template


def _check_kept(given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        if (flaw := flaw_of(name) or flaw_of(value)) is not None:
            raise ParamError(f"The parameter {name!r:.300} {flaw}.")


class _Announcement(msgspec.Struct):
    tell: Literal["begun", "judged"]


class _Judging:
    """Implements :class:`evenflow.forking.owned_child.ChildEvents`."""

    child: OwnedChild

    def __init__(self, question: bytes, time_s: float) -> None:
        self._question, self._time_s = question, time_s
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + time_s
        self._said: bytes | None = None
        self.answer: asyncio.Future[bytes] = self._loop.create_future()

    def started(self, pid: int) -> None: ...

    def frame(self, head: bytes, body: bytes) -> None:
        if msgspec.json.decode(head, type=_Announcement).tell == "begun":
            self.child.send({}, self._question)
        else:
            self._said = body

    def output(self, data: bytes) -> None: ...

    def exited(self, end: Exit) -> None:
        if self.answer.done():
            return
        if self._said is not None:
            self.answer.set_result(self._said)
        elif self._loop.time() >= self._until:
            self.answer.set_exception(NotJudged(f"that takes more than {self._time_s:g} s. Make it simpler."))
        else:
            memory = f"{limits.JUDGE_MEMORY // 2**20:,} MiB"
            self.answer.set_exception(NotJudged(f"the process that was to (with {memory} of memory) ended: {describe_exit(end)}."))
