"""Task logs in a directory: ``<dag_id>/<run_id>/<task_id>/<map_index>/<try>.<epoch>.log``, and ``<try>.<epoch>-<claim>.log`` for
each claim of the try's trigger. :mod:`evenflow.api.logs.files` defines how a log shows what is missing.
"""

from __future__ import annotations

import asyncio
import shutil
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import TypeVar

from evenflow.api import limits
from evenflow.api.logs.files import Part, begin, begin_after_gap, files_of, open_last
from evenflow.api.logs.store import Chunk, LogName, LogPart, LogStore, countable

FileLog = tuple[Path, int, str]  # one writer's: folder, try, writer
P = TypeVar("P", bound=Part | None)


class LogDirectory(LogStore):
    """Appends and reads. Several API processes may share a directory: a try's log has one writer at a time, its worker."""

    look_s = limits.LOG_CHECK

    def __init__(
        self, root: Path, lost: Callable[[int], None] = lambda _: None, refused: Callable[[int], None] = lambda _: None
    ) -> None:
        super().__init__(lost, refused)
        self._root = root
        self._open: OrderedDict[FileLog, Part] = OrderedDict()  # the growing parts; the last used comes last
        self._writing = asyncio.Lock()

    async def prepare(self) -> None:
        await asyncio.to_thread(self._root.mkdir, parents=True, exist_ok=True)

    async def tidy(self) -> None:
        await asyncio.Event().wait()  # files need no tidying

    async def _store(self, chunks: Sequence[Chunk]) -> tuple[list[int], list[str]]:
        async with self._writing:
            return await asyncio.to_thread(self._append_all, chunks)

    async def read(self, name: LogName, offset: int) -> LogPart:
        return await asyncio.to_thread(self._read, name, offset)

    async def _delete(self, of: PurePosixPath) -> None:
        folder = self._root / of
        async with self._writing:
            for log_of in [log_of for log_of in self._open if log_of[0].is_relative_to(folder)]:
                self._open.pop(log_of).close()
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    def free(self) -> float:
        return shutil.disk_usage(self._root).free

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()

    def _append_all(self, chunks: Sequence[Chunk]) -> tuple[list[int], list[str]]:
        offsets, failures = [], []
        for chunk in chunks:
            try:
                offsets.append(self._append(chunk))
            except OSError as error:
                failures.append(str(error))
                offsets.append(self._end(chunk))
        return offsets, failures

    def _append(self, chunk: Chunk) -> int:
        log_of = (self._root / chunk.name.folder(), chunk.name.try_number, chunk.writer)
        end = chunk.offset + len(chunk.data)
        part = self._known(log_of)
        if part is None or chunk.offset > part.end:  # another server may have begun a later part
            part = self._keep(log_of, open_last(*log_of))
        if part is not None and part.is_cut:
            return end
        if (missing := chunk.offset - (part.end if part else 0)) > 0:
            part = self._keep(log_of, begin_after_gap(*log_of, part, chunk.offset, chunk.lost))
            self._lost(countable(chunk.offset, missing))
            if part.is_cut:
                return end
        elif part is None:
            part = self._keep(log_of, begin(*log_of))
        stored = part.end
        if fresh := chunk.data[stored - chunk.offset :]:
            part.write(fresh)
        return max(end, stored)

    def _end(self, chunk: Chunk) -> int:
        """Returns where a log ends after a failed write."""
        try:
            part = self._known((self._root / chunk.name.folder(), chunk.name.try_number, chunk.writer))
            return part.end if part is not None else 0
        except OSError:
            return 0

    def _known(self, log_of: FileLog) -> Part | None:
        part = self._open.get(log_of)
        if part is not None and part.is_deleted:
            self._open.pop(log_of).close()
            return None
        if part is not None:
            self._open.move_to_end(log_of)
        return part

    def _keep(self, log_of: FileLog, part: P) -> P:
        """Keeps ``part`` as the open part of ``log_of``."""
        if (earlier := self._open.pop(log_of, None)) is not None and earlier is not part:
            earlier.close()
        if part is not None:
            self._open[log_of] = part
            if len(self._open) > limits.LOG_OPEN_FILES:
                self._open.popitem(last=False)[1].close()
        return part

    def _read(self, name: LogName, offset: int) -> LogPart:
        data, begin = b"", 0
        for path in files_of(self._root / name.folder(), name.try_number):
            end = begin + path.stat().st_size
            wanted = min(end, offset + limits.LOG_READ) - (offset + len(data))
            if wanted > 0:
                with path.open("rb") as file:
                    file.seek(offset + len(data) - begin)
                    data += file.read(wanted)
            begin = end
        return LogPart(data, offset + len(data), begin)
