"""Answers a process that loads a DAG file and asks for connections and variables: the API gives it what all DAGs may use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Protocol

import msgspec

from evenflow.core.limits import MAX_NAME_CHARS, MOST_VALUES_OF_FILE
from evenflow.core.object_names import SealedKind
from evenflow.errors import ApiRefused
from evenflow.forking.frames import FrameHeader
from evenflow.masker import Masker
from evenflow.sdk.secrets.masking import secrets_in
from evenflow.wire.messages import AskedValue, AskValue, GivenValue

_FORBIDDEN = 403  # to a file, because it is for certain DAGs


class ValueApi(Protocol):
    async def value(self, message: AskValue) -> GivenValue: ...


class _ValueQuestion(msgspec.Struct):
    kind: SealedKind
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME_CHARS)]


WantedValue = tuple[SealedKind, str]


class GivenValues:
    """What one load of ``file`` is given; ``masker`` learns its secrets."""

    def __init__(self, api: ValueApi, file: str, masker: Masker) -> None:
        self._api, self._file, self._masker = api, file, masker
        self._given: dict[WantedValue, GivenValue | None] = {}  # None: refused

    async def answer(self, question: FrameHeader) -> FrameHeader:
        """Returns the answer for the process, which runs authors' code. Raises :class:`ApiUnavailable`."""
        try:
            wanted = msgspec.convert(question, _ValueQuestion)
        except msgspec.ValidationError as error:
            return {"status": 422, "error": f"A name has 1 to {MAX_NAME_CHARS} characters: {error}."}
        key = wanted.kind, wanted.name
        if key not in self._given and len(self._given) >= MOST_VALUES_OF_FILE:
            told = f"A file can ask for {MOST_VALUES_OF_FILE} connections and variables while it is loaded, and this is one more"
            return {"status": 422, "error": f"{told}: {wanted.kind} {wanted.name!r}. Ask for it in a task."}
        try:
            given = await self._api.value(AskValue(kind=wanted.kind, name=wanted.name, file=self._file))
        except ApiRefused as error:
            self._given[key] = None
            return {"status": error.status, "error": str(error)}
        self._given[key] = given
        if given.text is not None:
            self._masker.add(secrets_in(wanted.kind, wanted.name, given.text))
        return {"text": given.text, "similar": given.similar}

    def asked(self) -> list[AskedValue]:
        return [
            AskedValue(kind=kind, name=name, changed_at=None if given is None else given.changed_at, refused=given is None)
            for (kind, name), given in self._given.items()
        ]

    def texts(self) -> Iterator[tuple[WantedValue, str | None]]:
        """Yields each value as it was given; None for one that is not defined, or was refused."""
        for key, given in self._given.items():
            yield key, None if given is None else given.text


async def text_of(api: ValueApi, wanted: WantedValue, file: str) -> str | None:
    """Returns a value as it is now, as :meth:`GivenValues.texts` has it. Raises :class:`ApiUnavailable`, and :class:`ApiRefused`
    when it is not known, as while a secret store is away.
    """
    kind, name = wanted
    try:
        return (await api.value(AskValue(kind=kind, name=name, file=file))).text
    except ApiRefused as error:
        if error.status != _FORBIDDEN:
            raise
        return None
