"""The files of one writer's log.

``<try>.<writer>.log`` begins with the first written byte. After a gap another part begins, with a line that describes the gap:
``<try>.<writer>+<position>.log``, where the position counts written bytes, not stored ones. So names and sizes alone say where a
log ends: API servers that share a folder agree on it, and one with its own folder knows what it lacks. Bytes are written at their
position, so two servers that write the same bytes store them once.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from evenflow.api import limits
from evenflow.api.logs.said import CUT, TORN, gap_line
from evenflow.wire.messages import LostLog

_FLAGS = os.O_RDWR | os.O_CREAT
_PART = re.compile(r"[0-9]+\.(?P<writer>[0-9]+(?:-[0-9]+)?)(?:\+(?P<position>[0-9]+))?\.log")


@dataclass(slots=True)
class Part:
    """An open file of a log."""

    descriptor: int
    position: int  # of its first byte
    header: int  # bytes of the line that describes the gap before it
    number: int  # how many parts the log has
    before: int  # bytes of the parts before

    @property
    def end(self) -> int:
        """The position of the next byte."""
        return self.position + os.fstat(self.descriptor).st_size - self.header

    @property
    def is_deleted(self) -> bool:
        return not os.fstat(self.descriptor).st_nlink

    @property
    def is_cut(self) -> bool:
        """Whether the log has reached its limit, so that nothing more is stored."""
        return self.number > limits.LOG_PARTS or self.before + os.fstat(self.descriptor).st_size > limits.LOG_TRY

    def write(self, data: bytes) -> None:
        """Writes at the end of the part, up to the limit of a log."""
        size = os.fstat(self.descriptor).st_size
        room = max(0, limits.LOG_TRY - self.before - size)
        _write_all(self.descriptor, data if len(data) <= room else data[:room] + CUT, size)

    def close(self) -> None:
        os.close(self.descriptor)


def parts_of(folder: Path, try_number: int) -> dict[str, list[tuple[int, Path]]]:
    """Returns the stored parts of a try by writer: position and path of each part, in order."""
    found: dict[str, list[tuple[int, Path]]] = {}
    for path in folder.glob(f"{try_number}.*.log"):
        if match := _PART.fullmatch(path.name):
            found.setdefault(match["writer"], []).append((int(match["position"] or 0), path))
    return {writer: sorted(parts) for writer, parts in found.items()}


def files_of(folder: Path, try_number: int) -> list[Path]:
    """Returns all stored files of a try, in order: only the log of its last writer grows."""
    found = parts_of(folder, try_number)
    newest = {writer: max(path.stat().st_mtime_ns for _, path in parts) for writer, parts in found.items()}
    return [path for writer in sorted(found, key=lambda writer: (newest[writer], writer)) for _, path in found[writer]]


def open_last(folder: Path, try_number: int, writer: str) -> Part | None:
    """Returns the part that may grow. A part whose first line is unfinished holds nothing, and is deleted."""
    parts = parts_of(folder, try_number).get(writer, [])
    while parts:
        position, path = parts.pop()
        descriptor = os.open(path, os.O_RDWR)
        header = _header(descriptor) if position else 0
        if header is not None:
            return Part(descriptor, position, header, len(parts) + 1, sum(path.stat().st_size for _, path in parts))
        os.close(descriptor)
        path.unlink()
    return None


def begin(folder: Path, try_number: int, writer: str) -> Part:
    path = folder / f"{try_number}.{writer}.log"
    try:
        descriptor = os.open(path, _FLAGS, 0o640)
    except FileNotFoundError:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, _FLAGS, 0o640)
    return Part(descriptor, 0, 0, 1, 0)


def begin_after_gap(folder: Path, try_number: int, writer: str, last: Part | None, position: int, lost: LostLog | None) -> Part:
    """Begins a part at ``position``, which lies behind the end of ``last``."""
    header = gap_line(position - (last.end if last else 0), lost)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{try_number}.{writer}+{position}.log"
    descriptor = os.open(path, _FLAGS, 0o640)
    try:
        _write_all(descriptor, header, 0)
    except OSError:
        os.close(descriptor)
        path.unlink()
        raise
    if last is None:
        return Part(descriptor, position, len(header), 1, 0)
    part = Part(descriptor, position, len(header), last.number + 1, last.before + os.fstat(last.descriptor).st_size)
    if part.is_cut:
        _write_all(descriptor, TORN, len(header))
    return part


def _header(descriptor: int) -> int | None:
    """Returns the bytes of the line about a gap and the empty line before it; None if it is unfinished."""
    end = os.pread(descriptor, limits.LOG_GAP_LINE, 0).find(b"\n", 1)
    return None if end < 0 else end + 1


def _write_all(descriptor: int, data: bytes, offset: int) -> None:
    rest = memoryview(data)
    while rest:
        written = os.pwrite(descriptor, rest, offset)
        rest, offset = rest[written:], offset + written
