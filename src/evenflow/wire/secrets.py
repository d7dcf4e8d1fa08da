"""What is secret in the questions of a try and in the answers to them: for what stands between user code and the control plane."""

from __future__ import annotations

import msgspec

from evenflow.core.object_names import CONNECTION, VARIABLE
from evenflow.masker import Masker
from evenflow.sdk.secrets.masking import secrets_in, texts_in
from evenflow.wire.messages import Message
from evenflow.wire.questions import AskNamed, Found, KeepRecord, Once, Rendered, SetAssetValue, SetOnce, SetVariable

SHOWN = (Rendered, KeepRecord, SetOnce, SetAssetValue, SetVariable)  # questions that are stored


def shown(message: Message, masker: Masker) -> Message:
    """Masks what people will see of a question, and marks what is secret in it."""
    match message:
        case Rendered():
            return Rendered(fields=masker.mask_value(message.fields))
        case KeepRecord():
            return KeepRecord(kind=message.kind, value=masker.mask_value(message.value))
        case SetOnce() | SetAssetValue():
            message.kept.secret = masker.finds_in(msgspec.json.encode(message.kept.value))
        case SetVariable(description=str() as description):
            message.description = masker.mask_text(description)
    return message


def secrets_of(question: str, message: Message, answer: object) -> list[str]:
    """Returns the secret texts in the answer to a question. The caller hides these before user code gets it."""
    if isinstance(answer, Once) and answer.kept is not None and answer.kept.secret:
        return texts_in(answer.kept.value)
    if question in (CONNECTION, VARIABLE) and isinstance(message, AskNamed) and isinstance(answer, Found) and answer.text:
        return secrets_in(CONNECTION if question == CONNECTION else VARIABLE, message.name, answer.text)
    return []
