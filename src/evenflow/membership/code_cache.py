"""DAG code on this host: fetched by its hash, and kept in ``<home>/code/<hash>`` for all services of the host with this home."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from evenflow.membership import limits
from evenflow.membership import observations as seen
from evenflow.telemetry.observing import observe
from evenflow.wire.code import is_unpacked, unpack


class CodeApi(Protocol):
    async def get_code(self, code_hash: str) -> bytes: ...


class CodeCache:
    def __init__(self, folder: Path, api: CodeApi) -> None:
        self._folder, self._api = folder, api
        self._turn = asyncio.Lock()

    async def fetch(self, code_hash: str) -> Path:
        """Returns the folder with the code. Each call checks it against the hash, because a task of the same user can write there,
        and fetches changed code anew. Raises what the API's client does, and :class:`CodeArchiveError`.
        """
        folder = self._folder / code_hash
        async with self._turn:
            with contextlib.suppress(FileNotFoundError):
                os.utime(folder)  # before the check: pruning spares folders in use
            if await asyncio.to_thread(is_unpacked, folder, code_hash=code_hash):
                return folder
            archive = await self._api.get_code(code_hash)
            await asyncio.to_thread(self._place, archive, folder)
        return folder

    def _place(self, archive: bytes, folder: Path) -> None:
        with self._alone():
            if is_unpacked(folder, code_hash=folder.name):
                return
            if os.path.lexists(folder):
                observe(seen.code_changed(str(folder)))
                self._put_away(folder)
            unpack(archive, folder, code_hash=folder.name)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Locks the cache against all other processes, so that none removes a folder that another has just made or checked."""
        self._folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _take(lock)
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # a child that was forked meanwhile holds it open, too
            os.close(lock)

    def _put_away(self, folder: Path) -> None:
        """Moves a folder away in one step: its name holds either nothing or a whole version."""
        away = Path(tempfile.mkdtemp(prefix=".away-", dir=self._folder))
        os.rename(folder, away / folder.name)
        shutil.rmtree(away, ignore_errors=True)

    def prune(self) -> None:
        """Deletes the least recently used versions above the limit. Only for a worker that starts: it has no try that could use
        them, and folders that other services of this host use are recent.
        """
        with self._alone():
            by_age = sorted((entry.stat().st_mtime, entry) for entry in self._folder.iterdir() if entry.is_dir())
            for used_at, folder in by_age[: -limits.STORED_CODE]:
                if folder.stat().st_mtime == used_at:
                    self._put_away(folder)


def _take(lock: int) -> None:
    """Takes the lock, or gives up after a while, because a task of the same user may hold it. The cache then works as if no other
    service shared it.
    """
    deadline = time.monotonic() + limits.CODE_LOCK
    while time.monotonic() < deadline:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(limits.CODE_LOCK_LOOK)
        else:
            return
