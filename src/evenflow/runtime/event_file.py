"""Events kept outside the database: an append-only file, each line chained to the previous one, and its comparison with the
database.

A database administrator can alter events, and the owner of the file can alter its lines. Comparing both reveals either. A line is
the event as JSON, with the chain's value so far: the SHA-256 of the previous value and of the event's text.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO, NamedTuple

from evenflow.core.settings import AUDIT_RETENTION_DAYS
from evenflow.errors import BadValue
from evenflow.store.db.connect import Row
from evenflow.store.db.rows import Conn
from evenflow.store.scheduling.incarnation import read_setting
from evenflow.store.serving import events
from evenflow.store.serving.events import ExportPlace, event_text, exported_value

AT_ONCE = 1_000  # events in memory, and in one read of the database
LONGEST_LINE = 1 << 20  # bytes; details of events are bounded far below
FIRST = "0" * 64  # the value before the first line
_NAMES = frozenset({"actor", "action", "object", "counted_as"})
_MAY_GROW = ("detail", "token_id", "address", "times", "last_at")  # of an event that stands for many: the values of the last one


class Exported(NamedTuple):
    events: int
    chain: str  # of the last line


class _End(NamedTuple):
    xact: int
    event_id: int
    incarnation: int
    chain: str


@dataclass(frozen=True, slots=True)
class Comparison:
    events: int  # in the file
    chain: str
    newer: int  # only in the database, because they came later
    aged: int  # only in the file, because the database has deleted them by age
    kept_days: int  # the database's age limit for events; 0: for ever
    wrong: list[tuple[str, str, str]]  # the problem, the event, and the explanation


class GrowingFile:
    """A file of events to which no other process appends meanwhile."""

    def __init__(self, file: Path, stream: BinaryIO) -> None:
        self._file, self._stream = file, stream
        self._known = _end_of(stream, file)
        self._end, self._count = self._known or _End(0, 0, 0, FIRST), 0

    @property
    def place(self) -> ExportPlace:
        """The place after which the file continues."""
        return ExportPlace(self._end.xact, self._end.event_id)

    @property
    def done(self) -> Exported:
        return Exported(self._count, self._end.chain)

    def check(self, incarnation: int) -> None:
        """Raises :class:`BadValue` when its last line is not of this incarnation of the database."""
        if self._known is not None and self._known.incarnation != incarnation:
            raise BadValue(
                f"The database was set back, or another server took it over, since {self._file} was written: they need not agree. "
                "Keep the file, and export to another one."
            )

    def append(self, found: Sequence[Row]) -> None:
        """Appends events with their incarnation. They are on the disk when this returns."""
        lines: list[bytes] = []
        for event in found:
            text = event_text(event)
            self._end = _End(event["xact"], event["event_id"], event["incarnation"], _next(self._end.chain, text))
            lines.append(_line(text, self._end.chain))
        self._stream.write(b"".join(lines))
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._count += len(found)


@contextmanager
def growing(file: Path) -> Iterator[GrowingFile]:
    """Opens the file, or makes it. Raises :class:`BadValue` when its last line is not from an export."""
    with open(os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "r+b") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadValue(f"Another export writes to {file}. Wait for it.") from None
        yield GrowingFile(file, stream)


def export(conn: Conn, file: Path) -> Exported:
    """Appends the events since the last line. Raises :class:`BadValue` when that line is not from this database."""
    with growing(file) as kept:
        incarnation = events.find_incarnation(conn)
        kept.check(incarnation)
        while rows := events.list_settled(conn, kept.place, limit=AT_ONCE):
            kept.append([row | {"incarnation": incarnation} for row in rows])
        return kept.done


def compare(conn: Conn, file: Path, *, noted: str | None = None) -> Comparison:
    """Compares the file with the database. ``noted`` is a chain value that a person has kept."""
    with file.open("rb") as stream:
        known, end, wrong, is_noted = _read(stream, noted)
    if not is_noted:
        wrong.append(("missing", "file", f"no line has the chain {noted}: lines were changed, or taken from the end"))
    if known and end.incarnation != events.find_incarnation(conn):
        raise BadValue(f"The database was set back, or another server took it over, since {file} was written: they need not agree.")
    count, newer = len(known), 0
    for row in _all(conn):
        then = known.pop(row["event_id"], None)
        if then is None:
            if (row["xact"], row["event_id"]) > end[:2]:
                newer += 1
            else:
                wrong.append(("put in", str(row["event_id"]), f"{row['actor']} {row['action']} {row['object']}"))
        elif not then.became(row):
            wrong.append(("changed", str(row["event_id"]), f"it is {row['actor']} {row['action']} {row['object']} in the database"))
    days = int(read_setting(conn, AUDIT_RETENTION_DAYS) or 0)
    oldest = datetime.now(UTC) - timedelta(days=days)
    aged = {event_id for event_id, then in known.items() if days and datetime.fromisoformat(then.at) < oldest}
    wrong += [("gone", str(event_id), f"of {then.at}") for event_id, then in known.items() if event_id not in aged]
    return Comparison(count, end.chain, newer, len(aged), days, wrong)


class _KnownEvent(NamedTuple):
    at: str
    times: int
    whole: bytes  # digests
    lasting: bytes

    @classmethod
    def of(cls, event: Row) -> _KnownEvent:
        lasting = {name: value for name, value in event.items() if name not in _MAY_GROW}
        return cls(
            exported_value(event["at"]),
            event["times"],
            _digest(event),
            _digest(lasting),
        )

    def became(self, row: Row) -> bool:
        """Returns whether this event can have become that row: only the count of an event that stands for many may rise."""
        now = _KnownEvent.of(_bare(row))
        grew = row["counted_as"] is not None and now.times > self.times
        return now.lasting == self.lasting if grew else now.whole == self.whole


def _read(stream: BinaryIO, noted: str | None) -> tuple[dict[int, _KnownEvent], _End, list[tuple[str, str, str]], bool]:
    known: dict[int, _KnownEvent] = {}
    end, wrong, is_noted = _End(0, 0, 0, FIRST), list[tuple[str, str, str]](), noted is None
    for number, line in enumerate(stream, 1):
        event = _parsed(line)
        if event is None:
            wrong.append(("changed", f"line {number}", "it is no line of an export"))
            continue
        chain = event.pop("chain")
        text = event_text(event)
        if chain != _next(end.chain, text):
            wrong.append(("changed", f"line {number}", "the chain is broken here"))
        elif line != _line(text, chain):
            wrong.append(("changed", f"line {number}", "it says the same in other words: who reads it may find something else"))
        is_noted = is_noted or chain == noted
        end = _End(event["xact"], event["event_id"], event["incarnation"], chain)
        before = known.get(event["event_id"])
        if before is not None and not before.became(event):
            wrong.append(("changed", str(event["event_id"]), f"line {number} says it otherwise than one before"))
        known[event["event_id"]] = _KnownEvent.of(_bare(event))
    return known, end, wrong, is_noted


def _end_of(stream: BinaryIO, file: Path) -> _End | None:
    """Returns the last line, or None for an empty file."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - LONGEST_LINE))
    tail = stream.read()
    if not tail:
        return None
    event = _parsed(tail.splitlines(keepends=True)[-1])
    if event is None:
        raise BadValue(
            f"{file} does not end with a line of an export: was the disk full? Take that end away, or export to another file."
        )
    return _End(event["xact"], event["event_id"], event["incarnation"], event["chain"])


def _parsed(line: bytes) -> Row | None:
    try:
        event = json.loads(line)
        datetime.fromisoformat(event["at"])
        whole = line.endswith(b"\n") and isinstance(event["chain"], str) and event.keys() >= _NAMES
        numbers = all(type(event[name]) is int for name in ("xact", "event_id", "incarnation", "times"))
    except (ValueError, KeyError, TypeError):
        return None
    return event if whole and numbers else None


def _all(conn: Conn) -> Iterator[Row]:
    rows, after = list[Row](), 0
    while rows := events.list_from(conn, event_id=after, limit=AT_ONCE):
        after = rows[-1]["event_id"]
        yield from rows


def _bare(event: Row) -> Row:
    """Returns an event without what depends on when it was read, which differs after further counts."""
    return {name: value for name, value in event.items() if name not in ("xact", "incarnation")}


def _line(text: str, chain: str) -> bytes:
    return f'{text[:-1]}, "chain": "{chain}"}}\n'.encode()


def _next(chain: str, text: str) -> str:
    return hashlib.sha256(f"{chain} {text}".encode()).hexdigest()


def _digest(event: Row) -> bytes:
    return hashlib.sha256(event_text(event).encode()).digest()
