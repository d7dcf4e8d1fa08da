"""The secrets in what the control plane answers: whoever brings an answer to user code knows them before that has it."""

from __future__ import annotations

from evenflow.sdk.secrets.lookup import CONNECTION, VARIABLE
from evenflow.sdk.secrets.masking import secrets_in
from evenflow.wire.messages import Message
from evenflow.wire.questions import AskNamed, Found


def secrets_of(question: str, message: Message, answer: Message) -> list[str]:
    """What of the answer to one of ``QUESTIONS`` must not be shown."""
    if question in (CONNECTION, VARIABLE) and isinstance(message, AskNamed) and isinstance(answer, Found) and answer.text:
        return secrets_in(CONNECTION if question == CONNECTION else VARIABLE, message.name, answer.text)
    return []
