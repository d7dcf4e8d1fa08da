"""Task logs in a directory: ``<dag_id>/<run_id>/<task_id>/<map_index>/<try>.<epoch>.log``.

A try that is sent again under a fresh epoch has one file for each, and each claim of a trigger that it waits for has its own,
``<try>.<epoch>-<claim>.log``. Only the newest grows, so read one after the other they are a
text in which an offset keeps its meaning.

Tasks matter more than their logs. When the disk is full, or fails in another way, what cannot be written is lost and counts as
stored, so that no task waits for its log. The log says that it is cut if there is room for so little; once there is room again, the
worker learns how far the log really is, and writes how much was lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote
from weakref import WeakValueDictionary

from evenflow.api import limits


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
    epoch: int
    offset: int
    data: bytes
    claim: int = 0  # of the trigger that the try waits for; 0: it is the try itself that writes


class LogText(NamedTuple):
    data: bytes
    next_offset: int
    at_end: bool


_CUT = b"\n-- The log is cut here: it has reached the limit of %d MiB for one try. --\n" % (limits.LOG_TRY // 2**20)
_LOST = b"\n-- The log is cut here: the API could not store it; its own log says why. --\n"

log = logging.getLogger(__name__)


class LogDirectory:
    """Appends and reads. Several API processes may share a directory: a try's log has one writer at a time, its worker. ``lost`` is
    told of bytes that could not be written, by any thread.
    """

    def __init__(self, root: Path, lost: Callable[[int], None] = lambda _: None) -> None:
        self._root, self._lost = root, lost
        self._cut: set[LogName] = set()  # logs that were cut, since the last time that writing worked
        self._open: OrderedDict[Path, int] = OrderedDict()  # file descriptors, the last used last
        self._writing = asyncio.Lock()
        self._news: WeakValueDictionary[LogName, asyncio.Event] = WeakValueDictionary()  # kept alive by those who wait

    async def append(self, chunks: Sequence[Chunk]) -> list[int]:
        """For each chunk, up to where its log is stored now. Below the chunk's offset: nothing was stored, there is a gap.

        What is stored already is dropped, and so is what lies above the limit or cannot be written, which counts as stored.
        """
        async with self._writing:
            stored = await asyncio.to_thread(lambda: [self._append_or_lose(chunk) for chunk in chunks])
        for name in {chunk.name for chunk in chunks}:
            news = self._news.pop(name, None)
            if news is not None:
                news.set()
        return stored

    async def read(self, name: LogName, offset: int) -> LogText:
        return await asyncio.to_thread(self._read, name, offset)

    async def wait(self, name: LogName, offset: int, seconds: float) -> LogText:
        """As :meth:`read`, but waits for up to ``seconds`` until there is something after ``offset``."""
        deadline = asyncio.get_running_loop().time() + seconds
        while True:
            news = self._news.setdefault(name, asyncio.Event())
            text = await self.read(name, offset)
            remaining = deadline - asyncio.get_running_loop().time()
            if text.data or remaining <= 0:
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
            for path in [path for path in self._open if path.is_relative_to(folder)]:
                os.close(self._open.pop(path))
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])

    def _append_or_lose(self, chunk: Chunk) -> int:
        try:
            stored = self._append(chunk)
        except OSError as error:
            if not self._cut:
                log.error("logs of tasks are lost: %s", error)
            self._lose(chunk)
            return chunk.offset + len(chunk.data)
        if self._cut and chunk.data:
            log.warning("logs of tasks are stored again")
            self._cut.clear()
        return stored

    def _lose(self, chunk: Chunk) -> None:
        """Says in the log that it is cut, once, in the place of what is lost: the log is never longer than what its worker sent."""
        size, end = 0, chunk.offset + len(chunk.data)
        with contextlib.suppress(OSError):
            descriptor, size = self._opened(self._path(chunk))
            if chunk.name not in self._cut:
                _write_all(descriptor, _LOST[: max(0, end - size)])
        self._cut.add(chunk.name)
        self._lost(end - max(chunk.offset, size))

    def _path(self, chunk: Chunk) -> Path:
        writer = f"{chunk.epoch}-{chunk.claim}" if chunk.claim else str(chunk.epoch)
        return self._root / chunk.name.folder() / f"{chunk.name.try_number}.{writer}.log"

    def _append(self, chunk: Chunk) -> int:
        descriptor, size = self._opened(self._path(chunk))
        end = chunk.offset + len(chunk.data)
        if size >= limits.LOG_TRY:
            return end
        if chunk.offset > size:
            return size
        fresh = chunk.data[size - chunk.offset :]
        if size + len(fresh) >= limits.LOG_TRY:
            fresh = fresh[: limits.LOG_TRY - size] + _CUT
        _write_all(descriptor, fresh)
        return max(end, size)

    def _opened(self, path: Path) -> tuple[int, int]:
        """A descriptor that appends to ``path``, and its size."""
        known = self._open.pop(path, None)
        if known is not None:
            status = os.fstat(known)
            if status.st_nlink:
                self._open[path] = known
                return known, status.st_size
            os.close(known)  # somebody deleted the file
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        try:
            descriptor = os.open(path, flags, 0o640)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, flags, 0o640)
        self._open[path] = descriptor
        if len(self._open) > limits.LOG_OPEN_FILES:
            os.close(self._open.popitem(last=False)[1])
        return descriptor, os.fstat(descriptor).st_size

    def _read(self, name: LogName, offset: int) -> LogText:
        parts = sorted((path.stat().st_mtime_ns, path) for path in (self._root / name.folder()).glob(f"{name.try_number}.*.log"))
        out, position, room = [], offset, limits.LOG_READ
        for _, path in parts:
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
                return LogText(b"".join(out), offset + limits.LOG_READ - room, False)
            position = 0
        data = b"".join(out)
        return LogText(data, offset + len(data), True)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _safe(name: str) -> str:
    """A directory name for any id: no separator, no dot in front, nothing that a shell trips over, and short enough."""
    quoted = quote(name, safe=":+@,=")
    if quoted.startswith("."):
        quoted = f"%2E{quoted[1:]}"
    return quoted if len(quoted) <= 200 else f"{quoted[:160]}~{sha256(name.encode()).hexdigest()[:32]}"
