"""Pages of lists. A list is read in its order, and each page begins behind the last row of the page before, wherever that is by
now: so rows that come and go neither repeat others nor hide them, and a page costs the same however far behind the first it is.

A cursor is that row's place: the keys by which the list's statement sorts, as the statement answers them in the column ``place``.
With it goes which list that was, of which filters, because a place means nothing in another one.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec
from fastapi import Request

from evenflow.api.refusals import Refused
from evenflow.contracts.rest.queries import PageQuery
from evenflow.contracts.rest.record import Page, checked_instant

T = TypeVar("T")
KeyKind = type[int] | type[str] | type[datetime]

VERSION = 1  # of cursors: another one is refused
_AGAIN = "Leave the cursor out to begin with the first page."
_BIGINT = range(-(2**63), 2**63 - 1)  # and what comes after each


class _Cursor(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    version: int
    listed: str  # which list, of which filters
    place: list[int | str]


def _as_it_is(row: Any) -> Any:
    return row


@dataclass(frozen=True, slots=True)
class ListPart:
    """What is asked for of a list. ``after`` is the place behind which it begins, as statements take it."""

    listed: str
    shown: int
    after: str | None

    @property
    def limit(self) -> int:
        """Of rows to read: one more than are shown, to know whether there are more."""
        return self.shown + 1

    def page(self, kind: type[Page[T]], rows: Sequence[Mapping[str, Any]], item: Callable[[Any], Any] = _as_it_is) -> Page[T]:
        """``rows`` are the read ones, ``item`` says how one is shown."""
        more = len(rows) > self.shown
        following = _written(_Cursor(VERSION, self.listed, rows[self.shown - 1]["place"])) if more else None
        items = [item(row) for row in rows[: self.shown]]
        return kind.model_validate({"items": items, "limit": self.shown, "next": following, "more": more})


def part_of(http: Request, query: PageQuery, *keys: KeyKind) -> ListPart:
    """``keys``: the kinds of those that the list is sorted by. Raises :class:`Refused` for a cursor that is not of this list."""
    filters = query.model_dump(mode="json", exclude={"limit", "cursor"}, exclude_defaults=True)
    listed = blake2b(msgspec.json.encode([http.scope["path"], filters], order="sorted"), digest_size=8).hexdigest()
    if query.cursor is None:
        return ListPart(listed, query.limit, None)
    cursor = _read(query.cursor)
    if cursor.listed != listed:
        raise _refused(
            "The cursor is of another list, or of this list with other filters.",
            f"Ask with the filters of the page that it came with. {_AGAIN}",
        )
    if len(cursor.place) != len(keys) or not all(map(_is_key, cursor.place, keys)):
        raise _unreadable()
    return ListPart(listed, query.limit, msgspec.json.encode(cursor.place).decode())


def _written(cursor: _Cursor) -> str:
    return urlsafe_b64encode(msgspec.json.encode(cursor)).rstrip(b"=").decode()


def _read(text: str) -> _Cursor:
    try:
        cursor = msgspec.json.decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=_Cursor)
    except (msgspec.MsgspecError, binascii.Error, ValueError):
        raise _unreadable() from None
    if cursor.version != VERSION:
        raise _refused(f"The cursor is of version {cursor.version}, and this API reads version {VERSION}.", _AGAIN)
    return cursor


def _is_key(key: int | str, kind: KeyKind) -> bool:
    """Whether the database can compare it with such a column."""
    if kind is int:
        return isinstance(key, int) and key in _BIGINT
    if not isinstance(key, str) or "\0" in key:
        return False
    if kind is datetime:
        try:
            checked_instant(datetime.fromisoformat(key))
        except ValueError:
            return False
    return True


def _unreadable() -> Refused:
    return _refused("The cursor cannot be read.", f"Send the `next` of a page as it is. {_AGAIN}")


def _refused(detail: str, hint: str) -> Refused:
    return Refused(422, "bad_cursor", detail, hint=hint)
