"""Brings user code's questions to the control plane, with tokens that user code never sees."""

from __future__ import annotations

from typing import Protocol

import msgspec

from evenflow.errors import ApiRefused, ApiUnavailable, StaleEpoch
from evenflow.membership.backoff import ApiSilent, Backoff, Silences
from evenflow.wire.messages import Message
from evenflow.wire.questions import QUESTIONS


class QuestionApi(Protocol):
    async def ask(self, token: str, question: str, message: Message) -> Message: ...


def read_question(question: str, body: bytes) -> Message:
    """Reads a question of ``QUESTIONS`` from its JSON. Raises :class:`ApiRefused` for what the control plane would not
    understand.
    """
    try:
        message: Message = msgspec.json.decode(body, type=QUESTIONS[question][0])
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise ApiRefused(400, f"The question {question!r} was asked in another way than it is answered: {error}.") from None
    return message


async def ask_patiently(api: QuestionApi, token: str, question: str, message: Message) -> Message:
    """Returns the answer, once the API can give it. Raises :class:`ApiRefused`, with status 409 when the asking try is over and 504
    when the question silences the API.
    """
    backoff, silences = Backoff(), Silences()
    while True:
        try:
            return await api.ask(token, question, message)
        except ApiUnavailable as error:  # user code waits with this service until the API is back or the lease is over
            _end_of_silence(silences, question, error)
            await backoff.wait()
        except StaleEpoch as error:
            raise ApiRefused(409, str(error)) from None


def _end_of_silence(silences: Silences, question: str, error: ApiUnavailable) -> None:
    try:
        silences.count(error)
    except ApiSilent as silent:
        raise ApiRefused(
            504,
            f"The question {question!r} has no answer: {silent}. What it holds may be too much to look at: ask for less.",
        ) from None
