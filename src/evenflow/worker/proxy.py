"""What a running try asks and tells, brought to the control plane with the try's token, which the try itself never sees."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol

import msgspec
import structlog

from evenflow.errors import ApiRefused, ApiUnavailable, StaleEpoch, XComError
from evenflow.masker import LEFT_OUT, Masker
from evenflow.process.answered_secrets import secrets_of
from evenflow.process.asking import QuestionApi, ask_patiently, read_question
from evenflow.process.frames import Header
from evenflow.process.patience import Patience
from evenflow.sdk.masking import texts_in
from evenflow.wire.messages import Message, Progress, XComPull, XComPush, XComValue
from evenflow.wire.questions import QUESTIONS, Once, Rendered, SetOnce, SetVariable
from evenflow.worker import limits
from evenflow.worker.values import TryValues

log = structlog.get_logger(__name__)


class TryApi(QuestionApi, Protocol):
    async def push_xcom(self, token: str, message: XComPush) -> None: ...

    async def pull_xcom(self, token: str, message: XComPull) -> XComValue: ...

    async def send_progress(self, token: str, message: Progress) -> None: ...


class TryProxy:
    """Of one try. ``answer`` sends a frame to its process, which asks one question at a time. ``masker`` learns the secrets that
    the try is given, before it has them; whatever people are to see goes through it.
    """

    def __init__(
        self,
        api: TryApi,
        token: str,
        answer: Callable[[Header, bytes], None],
        masker: Masker,
        values: TryValues,
        note: Callable[[str], None],
    ) -> None:
        self._api, self._token, self._answer, self._masker, self._values = api, token, answer, masker, values
        self._note = note  # into the log of the try
        self._told = False  # that there are more secrets than are masked
        self._tasks: set[asyncio.Task[None]] = set()
        self._progress: Progress | None = None
        self._progressing = False

    def serve(self, header: Header, body: bytes) -> None:
        """Take a frame from the try. Raises :class:`ValueError` for one that no try of this version sends."""
        match header:
            case {"ask": "pull", "task_id": str() as task_id, "key": str() as key, "map_index": int() | None as map_index}:
                pull = XComPull(task_id=task_id, key=key, map_index=map_index, run_id=header.get("run_id"))
                self._spawn(self._answered(self._pull(pull)))
            case {"ask": "push", "key": str() as key}:
                self._spawn(self._answered(self._push(key, body)))
            case {"ask": "control", "question": "mask"}:
                self._hide(_texts(json.loads(body)))
                self._answer({}, b"{}")
            case {"ask": "control", "question": str() as question} if question in QUESTIONS:
                self._spawn(self._answered(self._control(question, body)))
            case {
                "tell": "progress",
                "label": str() as label,
                "done": int() as done,
                "total": int() as total,
                "detail": dict() as detail,
            }:
                shown = self._masker.mask_value({"label": label, "detail": detail})
                self._progress = Progress(**shown, done=done, total=total)
                if not self._progressing:
                    self._progressing = True
                    self._spawn(self._send_progress())
            case _:
                raise ValueError(f"a frame that is not known: {str(header)[:200]}")

    def close(self) -> None:
        """The try is over; nobody waits for answers."""
        for task in self._tasks:
            task.cancel()

    def _hide(self, secrets: Iterable[str]) -> None:
        if not self._masker.add(secrets) and not self._told:
            self._told = True
            self._note(LEFT_OUT)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answered(self, work: Coroutine[Any, Any, None]) -> None:
        """Whatever happens: the process of the try would wait for ever."""
        try:
            await work
        except Exception as error:
            log.exception("a question of a try cannot be answered")
            self._answer({"error": f"The worker failed at this question; its log says where: {error!r:.300}", "status": 500}, b"")

    async def _pull(self, question: XComPull) -> None:
        patience = Patience()
        while True:
            try:
                value = await self._api.pull_xcom(self._token, question)
            except ApiUnavailable:  # the try waits with us, until the API is back or the lease is over
                await patience.wait()
            except (ApiRefused, StaleEpoch) as error:
                return self._answer({"error": str(error)}, b"")
            else:
                break
        try:
            found = await self._values.fetch(value, f"The XCom {question.key!r} of task {question.task_id!r}")
        except XComError as error:
            return self._answer({"error": str(error)}, b"")
        if value.secret:
            self._hide(texts_in(json.loads(found)))
        return self._answer({"found": value.found}, found)

    async def _push(self, key: str, body: bytes) -> None:
        try:
            value = await self._values.prepared(key, body, self._masker)
        except XComError as error:
            return self._answer({"error": str(error)}, b"")
        patience = Patience()
        while True:
            try:
                await self._api.push_xcom(self._token, value)
            except ApiUnavailable:
                await patience.wait()
            except (ApiRefused, StaleEpoch) as error:
                if value.stored is not None:
                    await self._values.discard(value.stored)
                return self._answer({"error": str(error)}, b"")
            else:
                return self._answer({}, b"")

    async def _control(self, question: str, body: bytes) -> None:
        try:
            message = self._shown(read_question(question, body))
            answer = await ask_patiently(self._api, self._token, question, message)
        except ApiRefused as error:
            self._answer({"error": str(error), "status": error.status}, b"")
        else:
            self._learn(question, message, answer)
            self._answer({}, msgspec.json.encode(answer))

    def _shown(self, message: Message) -> Message:
        """What people will see of it is masked, and what is secret is marked so."""
        match message:
            case Rendered():
                return Rendered(fields=self._masker.mask_value(message.fields))
            case SetOnce():
                message.secret = self._masker.finds_in(msgspec.json.encode(message.value))
            case SetVariable(description=str() as description):
                message.description = self._masker.mask_text(description)
        return message

    def _learn(self, question: str, message: Message, answer: Message) -> None:
        """The secrets of an answer are known before the try has it."""
        if isinstance(answer, Once) and answer.secret:
            self._hide(texts_in(answer.value))
        self._hide(secrets_of(question, message, answer))

    async def _send_progress(self) -> None:
        """Send the newest until there is no newer one. Progress is for people: what cannot be delivered is dropped."""
        while (progress := self._progress) is not None:
            self._progress = None
            try:
                await self._api.send_progress(self._token, progress)
            except (ApiUnavailable, ApiRefused, StaleEpoch) as error:
                log.debug("progress dropped", reason=str(error))
            except Exception as error:  # JSON has numbers that no message can carry
                log.debug("progress that cannot be sent", reason=f"{error!r:.200}")
            await asyncio.sleep(limits.PROGRESS_PAUSE)
        self._progressing = False


def _texts(arguments: Any) -> list[str]:
    values = arguments.get("values") if isinstance(arguments, dict) else None
    if not isinstance(values, list):
        raise ValueError("a question that is not known: mask without values")
    return [value for value in values if isinstance(value, str)]
