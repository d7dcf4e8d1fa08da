"""Task logs in object storage: ``<dag_id>/<run_id>/<task_id>/<map_index>/<try>/`` has the objects of all its writers, as
:mod:`evenflow.api.logs.layout` names them. Any API server serves any log.

Each append becomes an object before it counts as stored. Small objects are merged while their log grows, and all of them when it
stops growing.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from evenflow.api import limits
from evenflow.api import observations as seen
from evenflow.api.logs import layout
from evenflow.api.logs.bucket import Bucket
from evenflow.api.logs.directory import LogDirectory
from evenflow.api.logs.layout import Layout, LogObject, Piece, lay_out
from evenflow.api.logs.said import CUT, TORN, gap_line
from evenflow.api.logs.store import Chunk, LogName, LogPart, LogStore, countable
from evenflow.errors import LogStorageError, SettingsError
from evenflow.telemetry.observing import observe
from evenflow.wire.storage_threads import StorageThreads

ObjectLog = tuple[PurePosixPath, str]  # one writer's: folder of its try, writer
Groups = Callable[[Layout], list[list[Piece]]]


@dataclass(slots=True)
class Known:
    """What this server knows of one writer's log. ``order`` is the writer's; ``objects`` is None until they are listed."""

    order: int = 0
    objects: set[LogObject] | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    news_at: float = 0.0
    is_tidy: bool = True
    layout: Layout = field(default_factory=partial(Layout, (), 0, False))

    def take(self, found: set[LogObject]) -> None:
        self.objects, self.layout = found, lay_out(found)


class ObjectLogs(LogStore):
    """``url`` is as fsspec names it, such as ``s3://bucket/logs``."""

    look_s = limits.LOG_OBJECT_CHECK

    def __init__(
        self, url: str, lost: Callable[[int], None] = lambda _: None, refused: Callable[[int], None] = lambda _: None
    ) -> None:
        super().__init__(lost, refused)
        self._bucket = Bucket(url)
        self._known: OrderedDict[ObjectLog, Known] = OrderedDict()  # the last used comes last
        self._writing, self._reading = (StorageThreads(limits.LOG_STORAGE_CALLS) for _ in range(2))
        self._tidying = StorageThreads(limits.LOG_TIDY_CALLS)

    async def prepare(self) -> None:
        """Checks the storage. A setting that cannot be right is an error; storage that does not answer now is only reported."""
        self._bucket.open()
        try:
            await self._writing.run(limits.LOG_STORAGE, self._bucket.check)
        except (FileNotFoundError, PermissionError) as error:
            raise SettingsError(
                f"Logs cannot be stored in {self._bucket.url}: {_told(error)}. Make the bucket and let this server's account write "
                "to it, or correct EVENFLOW_LOG_URL. To look again: evenflow doctor"
            ) from None
        except Exception as error:
            observe(seen.log_storage_failed(_told(error)))

    def close(self) -> None:
        self._known.clear()

    def free(self) -> float:
        raise OSError("nobody knows how much room there is in object storage")

    # -- appending

    async def _store(self, chunks: Sequence[Chunk]) -> tuple[list[int], list[str]]:
        """Stores several logs at once, and the chunks of one log in their order."""
        offsets, failures = [0] * len(chunks), []

        async def store(places: Sequence[int]) -> None:
            for place in places:
                log = self._log_of(chunks[place])
                try:
                    async with asyncio.timeout(limits.LOG_STORAGE):
                        offsets[place] = await self._append(chunks[place], *log)
                except Exception as error:  # a file system may raise anything
                    offsets[place] = log[1].layout.end
                    log[1].objects = None  # an object that was being written may still appear
                    failures.append(f"{self._bucket.url}: {_told(error)}")

        logs: dict[tuple[LogName, str], list[int]] = {}
        for place, chunk in enumerate(chunks):
            logs.setdefault((chunk.name, chunk.writer), []).append(place)
        await asyncio.gather(*map(store, logs.values()))
        return offsets, failures

    def _log_of(self, chunk: Chunk) -> tuple[PurePosixPath, Known]:
        key = (_folder(chunk.name), chunk.writer)
        known = self._known.setdefault(key, Known())
        self._known.move_to_end(key)
        if len(self._known) > limits.LOG_KNOWN:
            self._known.popitem(last=False)
        return key[0], known

    async def _append(self, chunk: Chunk, folder: PurePosixPath, log: Known) -> int:
        async with log.lock:
            if log.objects is None or chunk.offset > log.layout.end:  # another server may have stored more
                await self._look(folder, chunk.writer, log)
            if len(log.layout.pieces) >= limits.LOG_OBJECTS + log.layout.gaps:
                await self._merge(folder, log, layout.whole, self._writing)
            if log.layout.is_cut:
                return chunk.end
            if (missing := chunk.offset - log.layout.end) > 0:
                await self._begin_after_gap(chunk, folder, log)
                self._lost(countable(chunk.offset, missing))
            begin = log.layout.end
            if fresh := chunk.data[begin - chunk.offset :] if not log.layout.is_cut else b"":
                room = max(0, limits.LOG_TRY - log.layout.size)
                is_cut = len(fresh) > room
                data = fresh[:room] + CUT if is_cut else fresh
                new = LogObject(log.order, chunk.writer, begin, begin + len(fresh), len(data), is_cut=is_cut)
                await self._put(folder, log, new, data)
            log.news_at, log.is_tidy = asyncio.get_running_loop().time(), False
            return max(chunk.end, log.layout.end)

    async def _begin_after_gap(self, chunk: Chunk, folder: PurePosixPath, log: Known) -> None:
        since = log.layout.end
        line = gap_line(chunk.offset - since, chunk.lost)
        if log.layout.gaps + 1 >= limits.LOG_PARTS:
            line += TORN
        await self._put(folder, log, LogObject(log.order, chunk.writer, chunk.offset, chunk.offset, len(line), since), line)

    async def _put(self, folder: PurePosixPath, log: Known, new: LogObject, data: bytes) -> None:
        await self._writing.run(limits.LOG_STORAGE, self._bucket.write, folder, new.name, data)
        log.take({*(log.objects or ()), new})

    async def _look(self, folder: PurePosixPath, writer: str, log: Known) -> None:
        found = layout.by_writer(await self._writing.run(limits.LOG_STORAGE, self._bucket.list, folder))
        orders = {name: items[0].order for name, items in found.items()}
        log.order = orders.get(writer, max(orders.values(), default=-1) + 1)
        log.take(set(found.get(writer, ())))

    # -- merging

    async def tidy(self) -> None:
        while True:
            await asyncio.sleep(limits.LOG_TIDY)
            now = asyncio.get_running_loop().time()
            quiet = {key for key, log in self._known.items() if not log.is_tidy and now - log.news_at >= limits.LOG_QUIET}
            grown = {key for key, log in self._known.items() if log.objects is not None and layout.due(log.layout)}
            await asyncio.gather(*(self._tidy(key, layout.whole if key in quiet else layout.due) for key in quiet | grown))

    async def _tidy(self, key: ObjectLog, groups: Groups) -> None:
        log = self._known.get(key)
        if log is None:
            return
        news_at = log.news_at
        try:
            if groups is layout.whole:
                async with log.lock:
                    await self._look(*key, log)
            await self._merge(key[0], log, groups, self._tidying)
            log.is_tidy = log.is_tidy or (groups is layout.whole and log.news_at == news_at)
        except Exception as error:  # a file system may raise anything; the log is still whole, and a later round looks again
            log.objects, log.news_at = None, asyncio.get_running_loop().time()
            observe(seen.log_not_merged(str(key[0]), _told(error)))

    async def _merge(self, folder: PurePosixPath, log: Known, groups: Groups, threads: StorageThreads) -> None:
        """Merges groups of objects. Merged bytes are stored twice for a moment, never less than once."""
        for group in groups(log.layout):
            new = layout.merged(group)
            await threads.run(limits.LOG_TIDY_TIME, self._rewrite, folder, group, new)
            log.take({*(log.objects or ()), new})
        if gone := layout.superfluous(log.objects or ()):
            await threads.run(limits.LOG_TIDY_TIME, self._bucket.delete, folder, [item.name for item in gone])
            log.take((log.objects or set()) - set(gone))

    def _rewrite(self, folder: PurePosixPath, group: Sequence[Piece], new: LogObject) -> None:
        whole = [
            Piece(item, max(0, position - item.start), item.end - max(position, item.start)) for item, position in _ends(group)
        ]
        self._bucket.write(folder, new.name, self._bucket.read(folder, whole))

    # -- reading, deleting

    async def read(self, name: LogName, offset: int) -> LogPart:
        try:
            for _ in range(3):
                try:
                    return await self._reading.run(limits.LOG_STORAGE, self._read, _folder(name), offset)
                except FileNotFoundError:  # it was merged in this moment
                    continue
            return await self._reading.run(limits.LOG_STORAGE, self._read, _folder(name), offset)
        except Exception as error:  # a file system may raise anything
            raise LogStorageError(
                f"The log cannot be read from {self._bucket.url}: {_told(error)}. Look at this storage, and at EVENFLOW_LOG_URL of "
                "the API servers; evenflow doctor on one of them tries it."
            ) from None

    def _read(self, folder: PurePosixPath, offset: int) -> LogPart:
        wanted, begin, until = [], 0, offset + limits.LOG_READ
        for objects in layout.by_writer(self._bucket.list(folder)).values():
            for piece in lay_out(objects).pieces:
                skip, end = max(0, offset - begin), min(piece.size, until - begin)
                if skip < end:
                    wanted.append(Piece(piece.object, piece.skip + skip, end - skip, piece.said[skip:end]))
                begin += piece.size
        data = self._bucket.read(folder, wanted)
        return LogPart(data, offset + len(data), begin)

    async def _delete(self, folder: PurePosixPath) -> None:
        for key in [key for key in self._known if key[0].is_relative_to(folder)]:
            del self._known[key]
        try:
            await self._tidying.run(limits.LOG_TIDY_TIME, self._bucket.delete_all, folder)
        except Exception as error:
            raise LogStorageError(f"Logs cannot be deleted from {self._bucket.url}: {_told(error)}.") from None


def open_logs(url: str, lost: Callable[[int], None], refused: Callable[[int], None]) -> LogStore:
    """Opens a folder of this host or of a shared file system (``file:///...``), or object storage."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return LogDirectory(Path(unquote(parts.path)), lost, refused)
    return ObjectLogs(url, lost, refused)


def _folder(name: LogName) -> PurePosixPath:
    return name.folder() / str(name.try_number)


def _ends(group: Sequence[Piece]) -> list[tuple[LogObject, int]]:
    """Returns each object, and the position that the objects before it reach."""
    objects = [piece.object for piece in group if piece.object is not None]
    return [(item, 0 if place == 0 else objects[place - 1].end) for place, item in enumerate(objects)]


def _told(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return str(error) or f"it did not answer within {limits.LOG_STORAGE:g} s"
    return f"{type(error).__name__}: {' '.join(str(error).split())[: limits.LOG_ERROR].rstrip('.')}"
