"""Task logs in a directory: ``<dag_id>/<run_id>/<task_id>/<map_index>/<try>.<epoch>.log``.

A try that is sent again under a fresh epoch has one file for each, and each claim of a trigger that it waits for has its own,
``<try>.<epoch>-<claim>.log``. Only the newest grows, so read one after the other they are a
text in which an offset keeps its meaning.

What cannot be stored, because the disk is full or fails in another way, is not: its writer is told where its log really ends, and
waits or drops. :mod:`evenflow.api.log_files` says how a log shows what is missing.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import quote
from weakref import WeakValueDictionary

from evenflow.api import limits
from evenflow.api import observations as seen
from evenflow.api.log_files import Part, begin, begin_after_gap, files_of, open_last
from evenflow.telemetry.observing import observe
from evenflow.wire.messages import LostLog


@dataclass(frozen=True, slots=True)
class LogName:
    """Whose log."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    try_number: int

    def folder(self) -> Path:
        return Path(_safe(self.dag_id), _safe(self.run_id), _safe(self.task_id), str(self.map_index))


class Chunk(NamedTuple):
    name: LogName
    writer: str  # see `writer_of`
    offset: int
    data: bytes
    lost: LostLog | None = None  # directly before it


class StoredLogs(NamedTuple):
    offsets: list[int]
    failure: str  # why not all is; empty: it is


class LogPart(NamedTuple):
    data: bytes
    next_offset: int
    at_end: bool


Log = tuple[Path, int, str]  # one writer's: folder, try, writer
P = TypeVar("P", bound=Part | None)


class LogDirectory:
    """Appends and reads. Several API processes may share a directory: a try's log has one writer at a time, its worker. ``lost`` is
    told of bytes that are missing, ``refused`` of chunks that could not be written, by any thread.
    """

    def __init__(
        self, root: Path, lost: Callable[[int], None] = lambda _: None, refused: Callable[[int], None] = lambda _: None
    ) -> None:
        self._root, self._lost, self._refused = root, lost, refused
        self._failing = False
        self._open: OrderedDict[Log, Part] = OrderedDict()  # the part that grows, the last used last
        self._writing = asyncio.Lock()
        self._news: WeakValueDictionary[LogName, asyncio.Event] = WeakValueDictionary()  # kept alive by those who wait

    async def append(self, chunks: Sequence[Chunk]) -> StoredLogs:
        """For each chunk, up to where its log is stored now. What is stored already is dropped; what lies above the limit counts as
        stored.
        """
        async with self._writing:
            stored = await asyncio.to_thread(self._append_all, chunks)
        for name in {chunk.name for chunk in chunks}:
            news = self._news.pop(name, None)
            if news is not None:
                news.set()
        return stored

    async def read(self, name: LogName, offset: int) -> LogPart:
        return await asyncio.to_thread(self._read, name, offset)

    async def wait(self, name: LogName, offset: int, seconds: float, known: int = 0) -> LogPart:
        """As :meth:`read`, but waits for up to ``seconds`` until there are more than ``known`` bytes after ``offset``."""
        deadline = asyncio.get_running_loop().time() + seconds
        while True:
            news = self._news.setdefault(name, asyncio.Event())
            text = await self.read(name, offset)
            remaining = deadline - asyncio.get_running_loop().time()
            if len(text.data) > known or remaining <= 0:
                return text
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(remaining, limits.LOG_CHECK)):
                    await news.wait()

    async def delete_run(self, dag_id: str, run_id: str) -> None:
        """Deletes the logs of a run whose tries have all ended."""
        await self._delete(self._root / _safe(dag_id) / _safe(run_id))

    async def delete_dag(self, dag_id: str) -> None:
        """Deletes the logs of a DAG that has no runs."""
        await self._delete(self._root / _safe(dag_id))

    async def _delete(self, folder: Path) -> None:
        async with self._writing:
            for log_of in [log_of for log_of in self._open if log_of[0].is_relative_to(folder)]:
                self._open.pop(log_of).close()
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()

    def _append_all(self, chunks: Sequence[Chunk]) -> StoredLogs:
        offsets, failures = [], []
        for chunk in chunks:
            try:
                offsets.append(self._append(chunk))
            except OSError as error:
                failures.append(str(error))
                offsets.append(self._end(chunk))
        if failures:
            self._refused(len(failures))
            if not self._failing:
                observe(seen.log_storage_failed(failures[0]))
        elif self._failing:
            observe(seen.log_storage_back())
        self._failing = bool(failures)
        return StoredLogs(offsets, failures[0] if failures else "")

    def _append(self, chunk: Chunk) -> int:
        log_of = (self._root / chunk.name.folder(), chunk.name.try_number, chunk.writer)
        end = chunk.offset + len(chunk.data)
        part = self._known(log_of)
        if part is None or chunk.offset > part.end:  # another server may have begun a part that is not known here
            part = self._keep(log_of, open_last(*log_of))
        if part is not None and part.is_cut:
            return end
        if (missing := chunk.offset - (part.end if part else 0)) > 0:
            part = self._keep(log_of, begin_after_gap(*log_of, part, chunk.offset, chunk.lost))
            self._lost(_countable(chunk.offset, missing))
            if part.is_cut:
                return end
        elif part is None:
            part = self._keep(log_of, begin(*log_of))
        stored = part.end
        if fresh := chunk.data[stored - chunk.offset :]:
            part.write(fresh)
        return max(end, stored)

    def _end(self, chunk: Chunk) -> int:
        """After a failure to write."""
        try:
            part = self._known((self._root / chunk.name.folder(), chunk.name.try_number, chunk.writer))
            return part.end if part is not None else 0
        except OSError:
            return 0

    def _known(self, log_of: Log) -> Part | None:
        part = self._open.get(log_of)
        if part is not None and part.is_deleted:
            self._open.pop(log_of).close()
            return None
        if part is not None:
            self._open.move_to_end(log_of)
        return part

    def _keep(self, log_of: Log, part: P) -> P:
        """``part`` is the one of ``log_of`` now."""
        if (earlier := self._open.pop(log_of, None)) is not None and earlier is not part:
            earlier.close()
        if part is not None:
            self._open[log_of] = part
            if len(self._open) > limits.LOG_OPEN_FILES:
                self._open.popitem(last=False)[1].close()
        return part

    def _read(self, name: LogName, offset: int) -> LogPart:
        out, position, room = [], offset, limits.LOG_READ
        for path in files_of(self._root / name.folder(), name.try_number):
            size = path.stat().st_size
            if position >= size:
                position -= size
                continue
            with path.open("rb") as file:
                file.seek(position)
                data = file.read(room)
            out.append(data)
            room -= len(data)
            if position + len(data) < size:
                return LogPart(b"".join(out), offset + limits.LOG_READ - room, False)
            position = 0
        data = b"".join(out)
        return LogPart(data, offset + len(data), True)


def writer_of(epoch: int, claim: int = 0) -> str:
    """The part of a log's name that says who writes it: a try, or a claim of the trigger that it waits for."""
    return f"{epoch}-{claim}" if claim else f"{epoch}"


def _countable(offset: int, missing: int) -> int:
    """Of bytes that are missing before ``offset``: no more of one log than may be stored of it, whatever its writer says."""
    return max(0, min(offset, limits.LOG_TRY) - (offset - missing))


def _safe(name: str) -> str:
    """A directory name for any id: no separator, no dot in front, nothing that a shell trips over, and short enough."""
    quoted = quote(name, safe=":+@,=")
    if quoted.startswith("."):
        quoted = f"%2E{quoted[1:]}"
    return quoted if len(quoted) <= 200 else f"{quoted[:160]}~{sha256(name.encode()).hexdigest()[:32]}"
