"""DAG code on this host: fetched by its hash, kept in ``<home>/code/<hash>`` for all services of the host that share the home."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Protocol

from evenflow.fleet import limits
from evenflow.fleet import observations as seen
from evenflow.telemetry.observing import observe
from evenflow.wire.code import is_unpacked, unpack


class CodeApi(Protocol):
    async def get_code(self, code_hash: str) -> bytes: ...


class CodeCache:
    def __init__(self, folder: Path, api: CodeApi) -> None:
        self._folder, self._api = folder, api
        self._turn = asyncio.Lock()

    async def fetch(self, code_hash: str) -> Path:
        """The folder with the code, checked against its hash each time: a task of the same user can write there. What was changed
        is fetched anew. Raises what the API's client does, and :class:`CodeArchiveError`.
        """
        folder = self._folder / code_hash
        async with self._turn:
            if await asyncio.to_thread(is_unpacked, folder, code_hash=code_hash):
                os.utime(folder)  # used: pruning spares it
                return folder
            archive = await self._api.get_code(code_hash)
            await asyncio.to_thread(self._place, archive, folder)
        return folder

    def _place(self, archive: bytes, folder: Path) -> None:
        """Alone of all processes: none takes a folder away that another one has just put there, or found whole."""
        self._folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _take(lock)
            if is_unpacked(folder, code_hash=folder.name):
                return
            if os.path.lexists(folder):
                observe(seen.code_changed(str(folder)))
                self._put_away(folder)
            unpack(archive, folder, code_hash=folder.name)
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # a child that was forked meanwhile has it open, too
            os.close(lock)

    def _put_away(self, folder: Path) -> None:
        """Out of the way in one step: there is either nothing under its name or all of a version."""
        away = Path(tempfile.mkdtemp(prefix=".changed-", dir=self._folder))
        os.rename(folder, away / folder.name)
        shutil.rmtree(away, ignore_errors=True)

    def prune(self) -> None:
        """Delete the least recently used versions above the limit. Only for a worker that starts: no try may use them."""
        self._folder.mkdir(parents=True, exist_ok=True)
        by_age = sorted((entry.stat().st_mtime, entry) for entry in self._folder.iterdir() if entry.is_dir())
        for _, folder in by_age[: -limits.STORED_CODE]:
            shutil.rmtree(folder, ignore_errors=True)


def _take(lock: int) -> None:
    """Not for ever: a task of the same user may hold it. Going on without it is as if the host were not shared."""
    deadline = time.monotonic() + limits.CODE_LOCK
    while time.monotonic() < deadline:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(limits.CODE_LOCK_LOOK)
        else:
            return
