"""Turns the objects of one writer's log into a text, from their names and sizes alone.

An object never changes. Its name says which positions of the written bytes it has. So two API servers that store the same bytes
agree, a delayed server overwrites nothing, and merged objects may exist beside the one that replaces them.

* ``<n>.<writer>.<start>-<end>.log`` has the bytes from ``start`` to ``end``;
* ``<n>.<writer>.<start>-<end>.cut.log`` has some of them, and says that the log ends here;
* ``<n>.<writer>.<since>+<start>.log`` says what is missing from ``since`` to ``start``: bytes in between that come later are not
shown, so that offsets of the text keep their meaning.

``n`` counts the writers of a try in the order in which they began.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evenflow.api import limits
from evenflow.api.logs.said import gap_line

_NAME = re.compile(
    r"(?P<order>[0-9]+)\.(?P<writer>[0-9]+(?:-[0-9]+)?)\.(?:(?P<since>[0-9]+)\+)?(?P<start>[0-9]+)(?:-(?P<end>[0-9]+)(?P<cut>\.cut)?)?\.log"
)


class LogObject(NamedTuple):
    order: int  # the place of its writer in the try
    writer: str
    start: int
    end: int
    size: int
    since: int | None = None  # of an object that describes a gap
    is_cut: bool = False

    @property
    def name(self) -> str:
        which = f"{self.start}-{self.end}{'.cut' if self.is_cut else ''}" if self.since is None else f"{self.since}+{self.start}"
        return f"{self.order}.{self.writer}.{which}.log"

    @property
    def is_plain(self) -> bool:
        return self.since is None and not self.is_cut


class Piece(NamedTuple):
    """``size`` bytes of an object from its byte ``skip`` on, or the bytes in ``said`` if there is no object."""

    object: LogObject | None
    skip: int
    size: int
    said: bytes = b""


@dataclass(frozen=True, slots=True)
class Layout:
    pieces: Sequence[Piece]
    end: int  # the position of the next byte
    is_cut: bool  # nothing more is stored

    @property
    def size(self) -> int:
        return sum(piece.size for piece in self.pieces)

    @property
    def gaps(self) -> int:
        return sum(piece.object is not None and piece.object.since is not None for piece in self.pieces)


def parse(name: str, size: int) -> LogObject | None:
    """Returns the object with this name; None if it does not belong to a log, or was not written to its end."""
    match = _NAME.fullmatch(name)
    if match is None or (match["since"] is None) == (match["end"] is None):
        return None
    start = int(match["start"])
    since = None if match["since"] is None else int(match["since"])
    found = LogObject(int(match["order"]), match["writer"], start, int(match["end"] or start), size, since, bool(match["cut"]))
    return None if found.is_plain and found.end - start != size else found


def by_writer(objects: Iterable[LogObject]) -> Mapping[str, list[LogObject]]:
    """Groups objects by writer, in the order in which the writers began."""
    found: dict[str, list[LogObject]] = {}
    for item in objects:
        found.setdefault(item.writer, []).append(item)
    order = {writer: min(item.order for item in items) for writer, items in found.items()}
    return {writer: found[writer] for writer in sorted(found, key=lambda writer: (order[writer], writer))}


def lay_out(objects: Iterable[LogObject]) -> Layout:
    """Lays out one writer's objects. Where several objects have a byte, it is the same in all of them."""
    listed = sorted(objects, key=lambda item: (item.start, -item.end))
    gaps = [item for item in listed if item.since is not None]
    told = [item for item in listed if item.since is None]
    pieces: list[Piece] = []
    at = 0  # index into `told`: earlier objects begin at `position` or before it
    position, best = 0, None
    for gap in [*gaps, None]:
        until = None if gap is None else gap.since
        while until is None or position < until:
            while at < len(told) and told[at].start <= position:
                best = told[at] if best is None or told[at].end > best.end else best
                at += 1
            if best is not None and best.end > position:
                stop = best.end if until is None else min(best.end, until)
                if best.is_cut:
                    pieces.append(Piece(best, min(position - best.start, best.size), max(0, best.size - (position - best.start))))
                    return Layout(pieces, best.end, True)
                pieces.append(Piece(best, position - best.start, stop - position))
                position = stop
            elif at < len(told) and (until is None or told[at].start < until):  # a stored object was deleted
                said = gap_line(told[at].start - position, None)
                pieces.append(Piece(None, 0, len(said), said))
                position = told[at].start
            else:
                break
        if gap is not None:
            pieces.append(Piece(gap, 0, gap.size))
            position = max(position, gap.start)
    return Layout(pieces, position, len(gaps) >= limits.LOG_PARTS)


def runs(layout: Layout) -> list[list[Piece]]:
    """Returns sequences of pieces that follow each other without a gap."""
    found: list[list[Piece]] = [[]]
    for piece in layout.pieces:
        if piece.object is not None and piece.object.is_plain:
            found[-1].append(piece)
        else:
            found.append([])
    return [run for run in found if run]


def due(layout: Layout) -> list[list[Piece]]:
    """Returns what to merge while the log grows: its last pieces that are small compared to what follows them, once there are many.
    So each byte is merged a number of times that grows with the logarithm of the log, as in a log-structured merge tree.
    """
    if not layout.pieces or layout.is_cut or layout.pieces[-1].object is None or not layout.pieces[-1].object.is_plain:
        return []
    last = runs(layout)[-1]
    first, size = len(last) - 1, last[-1].size
    while first and last[first - 1].size < 2 * size and last[first - 1].size + size <= limits.LOG_OBJECT:
        first -= 1
        size += last[first].size
    return [last[first:]] if len(last) - first > limits.LOG_LOOSE else []


def whole(layout: Layout) -> list[list[Piece]]:
    """Returns what to merge once the log no longer grows: all of it, into as few objects as possible."""
    found: list[list[Piece]] = []
    for run in runs(layout):
        size = limits.LOG_OBJECT  # so that the first piece begins a group
        for piece in run:
            if size + piece.size > limits.LOG_OBJECT:
                found.append([])
                size = 0
            found[-1].append(piece)
            size += piece.size
    return [group for group in found if len(group) > 1]


def merged(group: Sequence[Piece]) -> LogObject:
    """Returns the object that holds all bytes of these pieces' objects."""
    first, last = group[0].object, group[-1].object
    assert first is not None
    assert last is not None
    return LogObject(first.order, first.writer, first.start, last.end, last.end - first.start)


def superfluous(objects: Iterable[LogObject]) -> list[LogObject]:
    """Returns objects whose every byte is in a larger one. Two API servers that know different objects never delete what the other
    relies on, because the larger object always stays.
    """
    found, largest = [], None
    for item in sorted((item for item in objects if item.is_plain), key=lambda item: (item.start, -item.end)):
        if largest is not None and item.end <= largest.end:
            found.append(item)
        else:
            largest = item
    return found
