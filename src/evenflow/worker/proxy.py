"""Brings a running try's questions and reports to the control plane, with the try's token, which the try itself never sees."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol

import msgspec

from evenflow.core.limits import MAX_MESSAGE_BYTES
from evenflow.errors import ApiRefused, ApiUnavailable, StaleEpoch, XComError
from evenflow.forking.frames import FrameHeader
from evenflow.masker import LEFT_OUT, Masker
from evenflow.membership.asking import QuestionApi, ask_patiently, read_question
from evenflow.membership.backoff import Backoff
from evenflow.sdk.secrets.masking import texts_in
from evenflow.telemetry.observing import observe
from evenflow.wire.messages import Progress, XComPull, XComPush, XComValue
from evenflow.wire.questions import QUESTIONS
from evenflow.wire.secrets import secrets_of, shown
from evenflow.worker import limits
from evenflow.worker import observations as seen
from evenflow.worker.said import Ask, Pull, Push, QuestionOfTry, read_progress
from evenflow.worker.values import TryValues, off_loop


class _ToMask(msgspec.Struct):
    values: list[str]


_TO_MASK = msgspec.json.Decoder(_ToMask)


class TryApi(QuestionApi, Protocol):
    async def push_xcom(self, token: str, message: XComPush) -> None: ...

    async def pull_xcom(self, token: str, message: XComPull) -> XComValue: ...

    async def send_progress(self, token: str, message: Progress) -> None: ...


class TryProcess(Protocol):
    """The process of a try."""

    def send(self, header: FrameHeader, body: bytes = b"") -> None: ...

    def pause_frames(self) -> None: ...

    def resume_frames(self) -> None: ...


class TryProxy:
    """The proxy of one try. Its process has one question at a time: until that is answered, and the answer read, no more of its
    frames are read. ``masker`` learns each secret before the try gets it, and masks what people will see.
    """

    def __init__(
        self,
        api: TryApi,
        token: str,
        asker: TryProcess,
        masker: Masker,
        values: TryValues,
        note: Callable[[str], None],
    ) -> None:
        self._api, self._token, self._asker, self._masker, self._values = api, token, asker, masker, values
        self._note = note  # writes into the log of the try
        self._told = False  # whether the log says that too many secrets exist to mask all
        self._tasks: set[asyncio.Task[None]] = set()
        self._progress: bytes | None = None  # the newest unsent one
        self._progressing = False

    def serve(self, question: QuestionOfTry, body: bytes) -> None:
        """Answers a question of the try. Raises :class:`ValueError` for an unknown question."""
        work = self._work(question, body)
        self._asker.pause_frames()
        self._spawn(self._answered(work))

    def show_progress(self, body: bytes) -> None:
        """Shows progress to people, when its turn comes."""
        if len(body) > MAX_MESSAGE_BYTES:
            observe(seen.progress_dropped(f"{len(body):,} bytes"))
            return
        self._progress = body
        if not self._progressing:
            self._progressing = True
            self._spawn(self._send_progress())

    def close(self) -> None:
        """Stops, because the try is over and does not wait for answers."""
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

    def _work(self, question: QuestionOfTry, body: bytes) -> Coroutine[Any, Any, None]:
        match question:
            case Pull():
                return self._pull(XComPull(**msgspec.structs.asdict(question)))
            case Push():
                return self._push(question.key, body)
            case Ask(question="mask"):
                return self._mask(body)
            case Ask() if question.question in QUESTIONS:
                return self._ask(question.question, body)
        raise ValueError(f"a question that is not known: {question.question:.100}")

    async def _answered(self, work: Coroutine[Any, Any, None]) -> None:
        """Answers in any case: otherwise the process of the try would wait for ever."""
        try:
            await work
        except Exception as error:
            observe(seen.try_not_answered(error))
            self._answer({"error": f"The worker failed at this question; its log says where: {error!r:.300}", "status": 500}, b"")

    def _answer(self, header: FrameHeader, body: bytes) -> None:
        self._asker.send(header, body)
        self._asker.resume_frames()

    async def _pull(self, question: XComPull) -> None:
        backoff = Backoff()
        while True:
            try:
                value = await self._api.pull_xcom(self._token, question)
            except ApiUnavailable:  # the try waits with this worker until the API is back or the lease is over
                await backoff.wait()
            except (ApiRefused, StaleEpoch) as error:
                return self._answer({"error": str(error)}, b"")
            else:
                break
        try:
            found = await self._values.fetch(value, f"The XCom {question.key!r} of task {question.task_id!r}")
        except XComError as error:
            return self._answer({"error": str(error)}, b"")
        if value.secret:
            self._hide(await off_loop(len(found), lambda: texts_in(json.loads(found))))
        return self._answer({"found": value.found}, found)

    async def _push(self, key: str, body: bytes) -> None:
        try:
            value = await self._values.prepared(key, body, self._masker)
        except XComError as error:
            return self._answer({"error": str(error)}, b"")
        backoff = Backoff()
        while True:
            try:
                await self._api.push_xcom(self._token, value)
            except ApiUnavailable:
                await backoff.wait()
            except (ApiRefused, StaleEpoch) as error:
                if value.stored is not None:
                    await self._values.discard(value.stored)
                return self._answer({"error": str(error)}, b"")
            else:
                return self._answer({}, b"")

    async def _mask(self, body: bytes) -> None:
        try:
            to_mask = await off_loop(len(body), lambda: _TO_MASK.decode(body))
        except (ValueError, RecursionError) as error:
            self._answer({"error": f"What to mask was said in another way than it is understood: {error}.", "status": 400}, b"")
        else:
            self._hide(to_mask.values)
            self._answer({}, b"{}")

    async def _ask(self, question: str, body: bytes) -> None:
        try:
            if len(body) > MAX_MESSAGE_BYTES:
                raise ApiRefused(413, f"A question of {len(body):,} bytes is above the limit of {MAX_MESSAGE_BYTES:,}.")
            message = shown(read_question(question, body), self._masker)
            answer = await ask_patiently(self._api, self._token, question, message)
        except ApiRefused as error:
            self._answer({"error": str(error), "status": error.status}, b"")
        else:
            self._hide(secrets_of(question, message, answer))  # before the try has it
            self._answer({}, msgspec.json.encode(answer))

    async def _send_progress(self) -> None:
        """Sends the newest progress until there is no newer one. It is only for people: what cannot be delivered is dropped."""
        while (said := self._progress) is not None:
            self._progress = None
            try:
                progress = read_progress(said)
                shown = self._masker.mask_value({"label": progress.label, "detail": progress.detail})
                await self._api.send_progress(self._token, msgspec.structs.replace(progress, **shown))
            except (ApiUnavailable, ApiRefused, StaleEpoch) as error:
                observe(seen.progress_dropped(str(error)))
            except Exception as error:  # user code may send anything, and JSON has numbers that no message can carry
                observe(seen.progress_dropped(f"{error!r:.200}"))
            await asyncio.sleep(limits.PROGRESS_PAUSE)
        self._progressing = False
