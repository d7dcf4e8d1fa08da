"""Brings triggers' questions to the control plane, with tokens that the triggers never see."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec

from evenflow.errors import ApiRefused
from evenflow.forking.frames import FrameHeader
from evenflow.membership.asking import QuestionApi, ask_patiently, read_question
from evenflow.triggerer import limits
from evenflow.triggerer.trigger import Trigger
from evenflow.wire.messages import Message
from evenflow.wire.secrets import secrets_of
from evenflow.wire.triggers import TRIGGER_QUESTIONS


class OpenQuestions:
    """The open questions of one host. ``taken`` returns how many of the bytes for it have left."""

    def __init__(self, taken: Callable[[], int]) -> None:
        self._taken = taken
        self._asked = 0  # bytes of unanswered questions
        self._answered: deque[tuple[int, int]] = deque()  # answers that may be unread: where each ends, and its bytes
        self._kept = 0  # bytes of those

    def ask(self, size: int) -> None:
        """Counts a question. Raises :class:`ValueError` when it is one too many."""
        taken = self._taken()
        while self._answered and self._answered[0][0] <= taken:
            self._kept -= self._answered.popleft()[1]
        self._asked += size + limits.QUESTION
        if self._asked + self._kept > limits.OPEN_QUESTIONS:
            raise ValueError(f"questions of more than {limits.OPEN_QUESTIONS // 2**20} MiB at once")

    def answer(self, size: int, answer: int, queued: int) -> None:
        """Counts the answer to a question of ``size`` bytes; the answer is the last of ``queued`` bytes in all."""
        self._asked -= size + limits.QUESTION
        self._answered.append((queued, answer + limits.QUESTION))
        self._kept += answer + limits.QUESTION


class Questions:
    """``serve`` answers through the function ``answer``; a trigger that is over by then gets no answer. A trigger has one question
    at a time at the API, so a flood of its questions delays no other trigger.
    """

    def __init__(self, api: QuestionApi) -> None:
        self._api = api
        self._at_once = asyncio.Semaphore(limits.ASKED_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    def serve(
        self,
        trigger: Trigger,
        question: str,
        body: bytes,
        answer: Callable[[FrameHeader, bytes], None],
        wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """``wanted`` returns whether the answer is still wanted, when the question's turn has come."""
        if question not in TRIGGER_QUESTIONS:
            known = ", ".join(TRIGGER_QUESTIONS)
            answer(
                {"error": f"A trigger cannot ask {question!r:.100}; it can ask: {known}. Let the task ask it.", "status": 400}, b""
            )
            return
        try:
            message = read_question(question, body)
        except ApiRefused as error:
            answer({"error": str(error), "status": error.status}, b"")
            return
        task = asyncio.get_running_loop().create_task(self._in_turn(trigger, question, message, answer, wanted))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _in_turn(
        self,
        trigger: Trigger,
        question: str,
        message: Message,
        answer: Callable[[FrameHeader, bytes], None],
        wanted: Callable[[], bool],
    ) -> None:
        async with trigger.turn(), self._at_once:
            if wanted():
                await self._ask(trigger, question, message, answer)

    async def _ask(self, trigger: Trigger, question: str, message: Message, answer: Callable[[FrameHeader, bytes], None]) -> None:
        try:
            found = await ask_patiently(self._api, trigger.assignment.token, question, message)
        except ApiRefused as error:
            answer({"error": str(error), "status": error.status}, b"")
        else:
            trigger.learn(secrets_of(question, message, found))
            answer({}, msgspec.json.encode(found))
