"""Removes secrets from text, in one pass over it however many they are.

Separate from :mod:`evenflow.sdk.secrets.masking`, which decides what is secret and is imported by authors, because it needs a
library.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

from evenflow.core.limits import MAX_SECRET_BYTES
from evenflow.sdk.secrets.lookup import ENV_PREFIXES
from evenflow.sdk.secrets.masking import (
    MASK,
    MAX_FORM_BYTES,
    MAX_FORMS,
    MAX_SECRETS,
    MAX_TAIL,
    MIN_LENGTH,
    forms,
    secrets_in,
)

LEFT_OUT = "there are more secrets, or longer ones, than are masked: the rest is shown as it is wherever it is printed"
_PIECE = 1024 * 1024  # bytes that are looked through at once


class Masker:
    """Knows secrets and removes them from text. Without secrets it costs nothing."""

    def __init__(self) -> None:
        self._secrets: set[str] = set()
        self._forms: set[bytes] = set()
        self._size = 0  # of all forms
        self._search: tuple[int, _FormSearch] | None = None  # for this number of forms, made when it is first needed

    def add(self, secrets: Iterable[str]) -> bool:
        """Adds secrets, and returns whether all are known from now on. A call adds at most :data:`MAX_SECRETS`, and a masker holds
        at most :data:`MAX_FORMS` forms of :data:`MAX_FORM_BYTES`: one worker masks for many tries.
        """
        some = iter(secrets)
        left_out = [secret for secret in islice(some, MAX_SECRETS) if not self._take(secret)]
        return not left_out and next(some, None) is None

    def _take(self, secret: str) -> bool:
        if secret in self._secrets:
            return True
        if len(secret) > MAX_SECRET_BYTES:
            return False
        new = {form.encode("utf-8", "surrogatepass") for form in forms(secret)} - self._forms
        size = sum(map(len, new))
        if len(self._forms) + len(new) > MAX_FORMS or self._size + size > MAX_FORM_BYTES:
            return False
        self._secrets.add(secret)
        if new:
            self._forms |= new
            self._size += size
        return True

    def learn(self, other: Masker) -> None:
        """Adds the secrets of another masker."""
        self.add(other._secrets - self._secrets)

    def copy(self) -> Masker:
        """Returns a masker with the same secrets, which learns on its own."""
        other = Masker()
        other._secrets, other._forms, other._size = set(self._secrets), set(self._forms), self._size
        other._search = (len(self._forms), self._made()) if self._forms else None
        return other

    def __bool__(self) -> bool:
        return bool(self._forms)

    def finds_in(self, data: bytes) -> bool:
        return bool(self._forms) and next(self._made().places(data), None) is not None

    def found_in(self, data: bytes) -> list[str]:
        """Returns the secrets in ``data``, in the form in which they occur."""
        found = {data[start:end] for start, end in self._made().places(data)} if self._forms else set()
        return sorted(text.decode("utf-8", "surrogatepass") for text in found)

    def mask(self, data: bytes) -> bytes:
        if not self._forms:
            return data
        shown, at = bytearray(), 0
        for start, end in self._made().places(data):
            shown += data[at:start] + MASK.encode()
            at = end
        return bytes(shown + data[at:]) if at else data

    def mask_text(self, text: str) -> str:
        return self.mask(text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace") if self._forms else text

    def mask_value(self, value: Any) -> Any:
        """Returns ``value`` of JSON's types with all text in it masked, including keys."""
        if not self._forms:
            return value
        match value:
            case str():
                return self.mask_text(value)
            case dict():
                return {self.mask_text(key): self.mask_value(item) for key, item in value.items()}
            case list():
                return [self.mask_value(item) for item in value]
            case _:
                return value

    def tail_to_keep(self, data: bytes) -> int:
        """Returns how many bytes at the end of ``data`` may be the beginning of a secret: the next bytes decide."""
        return self._made().tail_to_keep(data) if self._forms else 0

    def _made(self) -> _FormSearch:
        """Returns a current search. Threads may add forms meanwhile, so a stored search may cover fewer forms than are known."""
        made, known = self._search, len(self._forms)
        if made is None or made[0] != known:
            made = self._search = known, _FormSearch(self._forms)
        return made[1]


class _FormSearch:
    """Finds the longest of several forms that begin at one place; no two results overlap."""

    def __init__(self, forms: Iterable[bytes], piece: int = _PIECE) -> None:
        self._ordered = sorted(forms)
        self._beginnings = {form[:MIN_LENGTH] for form in self._ordered}
        self._longest = max(map(len, self._ordered))
        self._piece = max(piece, 2 * self._longest)
        self._automaton = BytesAhoCorasick(self._ordered, MatchKind.LeftmostLongest, Implementation.ContiguousNFA)

    def places(self, data: bytes) -> Iterator[tuple[int, int]]:
        at = 0
        while at < len(data):
            piece = data[at : at + self._piece]
            # A form that begins after this may be longer than the piece shows; the next piece begins there.
            decided = len(piece) if at + len(piece) == len(data) else len(piece) - self._longest + 1
            goes_on = decided
            for _, start, end in self._automaton.find_matches_as_indexes(piece):
                if start < decided:
                    yield at + start, at + end
                    goes_on = max(decided, end)
            at += goes_on

    def tail_to_keep(self, data: bytes) -> int:
        for place in range(max(0, len(data) - min(self._longest - 1, MAX_TAIL)), len(data)):
            beginning = data[place : place + MIN_LENGTH]
            if (len(beginning) < MIN_LENGTH or beginning in self._beginnings) and self._is_begun_by(data[place:]):
                return len(data) - place
        return 0

    def _is_begun_by(self, text: bytes) -> bool:
        """Returns whether a form begins with ``text``: then the first form that is not below it does."""
        place = bisect_left(self._ordered, text)
        return place < len(self._ordered) and self._ordered[place].startswith(text)


def masker_of(environ: Mapping[str, str]) -> Masker:
    """Returns a masker with the secrets of the connections and variables of an environment, which any task can print."""
    masker = Masker()
    for kind, prefix in ENV_PREFIXES.items():
        for name, text in environ.items():
            if name.startswith(prefix):
                masker.add(secrets_in(kind, name.removeprefix(prefix), text))
    return masker
