"""The interface of all places for task logs: they take chunks at their offsets, and are read by range while more is written.

A try that is sent again under a fresh epoch has a log for each epoch. Each claim of a trigger that the try waits for has a log,
too. Only the newest log grows, so all of them in order form a text in which an offset keeps its meaning.

A chunk that cannot be stored is refused: its writer learns where the log really ends, and waits or drops the chunk.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import quote
from weakref import WeakValueDictionary

from evenflow.api import limits
from evenflow.api import observations as seen
from evenflow.core.object_names import TryName
from evenflow.telemetry.observing import observe
from evenflow.wire.messages import LostLog


@dataclass(frozen=True, slots=True)
class LogName(TryName):
    """The try that a log is of."""

    def folder(self) -> PurePosixPath:
        return run_folder(self.dag_id, self.run_id) / _safe(self.task_id) / str(self.map_index)


class Chunk(NamedTuple):
    name: LogName
    writer: str  # see `writer_of`
    offset: int
    data: bytes
    lost: LostLog | None = None  # what was lost directly before it

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


class StoredLogs(NamedTuple):
    offsets: list[int]
    failure: str  # why some are not stored; empty when all are


class LogPart(NamedTuple):
    data: bytes
    next_offset: int
    size: int  # of all that is stored, in bytes

    @property
    def at_end(self) -> bool:
        return self.next_offset >= self.size


class LogStore(ABC):
    """``lost`` is called with missing bytes, ``refused`` with chunks that could not be written, from any thread."""

    look_s: float  # how often a waiting reader looks for what another API process wrote

    def __init__(self, lost: Callable[[int], None] = lambda _: None, refused: Callable[[int], None] = lambda _: None) -> None:
        self._lost, self._refused = lost, refused
        self._failing = False
        self._news: WeakValueDictionary[LogName, asyncio.Event] = WeakValueDictionary()  # waiting readers keep these alive

    @abstractmethod
    async def prepare(self) -> None:
        """Prepares the place before its first use. Raises :class:`SettingsError` for a place that cannot be right."""

    @abstractmethod
    async def tidy(self) -> None:
        """Merges and tidies until it is cancelled, beside all other calls."""

    @abstractmethod
    async def _store(self, chunks: Sequence[Chunk]) -> tuple[list[int], list[str]]:
        """Returns up to where each log is stored, and the failures."""

    @abstractmethod
    async def read(self, name: LogName, offset: int) -> LogPart:
        """Returns at most :data:`~evenflow.api.limits.LOG_READ` bytes."""

    @abstractmethod
    async def _delete(self, folder: PurePosixPath) -> None: ...

    @abstractmethod
    def free(self) -> float:
        """Returns the free bytes. Raises :class:`OSError` where they are not known."""

    @abstractmethod
    def close(self) -> None: ...

    async def append(self, chunks: Sequence[Chunk]) -> StoredLogs:
        """Returns for each chunk up to where its log is stored now. Bytes that are stored already are dropped; bytes above the
        limit count as stored.
        """
        offsets, failures = await self._store(chunks)
        if failures:
            self._refused(len(failures))
            if not self._failing:
                observe(seen.log_storage_failed(failures[0]))
        elif self._failing:
            observe(seen.log_storage_back())
        self._failing = bool(failures)
        for name in {chunk.name for chunk in chunks}:
            news = self._news.pop(name, None)
            if news is not None:
                news.set()
        return StoredLogs(offsets, failures[0] if failures else "")

    async def wait(self, name: LogName, offset: int, seconds: float, known: int = 0) -> LogPart:
        """Works like :meth:`read`, but waits for up to ``seconds`` until there are more than ``known`` bytes after ``offset``."""
        deadline = asyncio.get_running_loop().time() + seconds
        while True:
            news = self._news.setdefault(name, asyncio.Event())
            text = await self.read(name, offset)
            remaining = deadline - asyncio.get_running_loop().time()
            if len(text.data) > known or remaining <= 0:
                return text
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(remaining, self.look_s)):
                    await news.wait()

    async def delete_run(self, dag_id: str, run_id: str) -> None:
        """Deletes the logs of a run whose tries have all ended."""
        await self._delete(run_folder(dag_id, run_id))

    async def delete_dag(self, dag_id: str) -> None:
        """Deletes the logs of a DAG that has no runs."""
        await self._delete(PurePosixPath(_safe(dag_id)))


def writer_of(epoch: int, claim: int = 0) -> str:
    """Returns the part of a log's name that identifies its writer: a try, or a claim of the try's trigger."""
    return f"{epoch}-{claim}" if claim else f"{epoch}"


def countable(offset: int, missing: int) -> int:
    """Returns how many of the ``missing`` bytes before ``offset`` count: at most what a log may hold, whatever its writer says."""
    return max(0, min(offset, limits.LOG_TRY) - (offset - missing))


def run_folder(dag_id: str, run_id: str) -> PurePosixPath:
    return PurePosixPath(_safe(dag_id), _safe(run_id))


def _safe(name: str) -> str:
    """Returns a directory name for any id: no separator, no leading dot, no character that is special to a shell, and short."""
    quoted = quote(name, safe=":+@,=")
    if quoted.startswith("."):
        quoted = f"%2E{quoted[1:]}"
    return quoted if len(quoted) <= 200 else f"{quoted[:160]}~{sha256(name.encode()).hexdigest()[:32]}"
