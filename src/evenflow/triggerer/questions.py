"""What triggers ask the control plane, brought there with their tokens, which they never see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import msgspec

from evenflow.errors import ApiRefused, ApiUnavailable, StaleEpoch
from evenflow.process.answered_secrets import secrets_of
from evenflow.process.frames import Header
from evenflow.process.patience import Patience
from evenflow.triggerer.trigger import Trigger
from evenflow.wire.messages import Message
from evenflow.wire.questions import QUESTIONS
from evenflow.wire.triggers import TRIGGER_QUESTIONS


class QuestionApi(Protocol):
    async def ask(self, token: str, question: str, message: Message) -> Message: ...


class Questions:
    """``serve`` answers through the function that it is given; a trigger that is over by then does not hear it."""

    def __init__(self, api: QuestionApi) -> None:
        self._api = api
        self._tasks: set[asyncio.Task[None]] = set()

    def serve(self, trigger: Trigger, question: str, body: bytes, answer: Callable[[Header, bytes], None]) -> None:
        """Raises :class:`ValueError` for a question that is no text of a question."""
        if question not in TRIGGER_QUESTIONS:
            known = ", ".join(TRIGGER_QUESTIONS)
            answer(
                {"error": f"A trigger cannot ask {question!r:.100}; it can ask: {known}. Let the task ask it.", "status": 400}, b""
            )
            return
        try:
            message = msgspec.json.decode(body, type=QUESTIONS[question][0])
        except msgspec.ValidationError as error:
            answer(
                {"error": f"The question {question!r} was asked in another way than it is answered: {error}.", "status": 400}, b""
            )
            return
        task = asyncio.get_running_loop().create_task(self._ask(trigger, question, message, answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _ask(self, trigger: Trigger, question: str, message: Message, answer: Callable[[Header, bytes], None]) -> None:
        patience = Patience()
        while True:
            try:
                found = await self._api.ask(trigger.assignment.token, question, message)
            except ApiUnavailable:  # the trigger waits with us, until the API is back or the lease is over
                await patience.wait()
            except ApiRefused as error:
                return answer({"error": str(error), "status": error.status}, b"")
            except StaleEpoch as error:
                return answer({"error": str(error), "status": 409}, b"")
            else:
                trigger.learn(secrets_of(question, message, found))
                return answer({}, msgspec.json.encode(found))
