"""DAG code on this host: fetched once by its hash, kept in ``<home>/code/<hash>``."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
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
        async with self._turn:  # so that no mending takes a folder away that another call has just found whole
            if await asyncio.to_thread(is_unpacked, folder, code_hash=code_hash):
                os.utime(folder)  # used: pruning spares it
                return folder
            archive = await self._api.get_code(code_hash)
            if folder.is_dir():
                observe(seen.code_changed(str(folder)))
                await asyncio.to_thread(self._put_away, folder)
            await asyncio.to_thread(unpack, archive, folder, code_hash=code_hash)
        return folder

    def _put_away(self, folder: Path) -> None:
        """Out of the way in one step: there is either nothing under its name or all of a version."""
        away = Path(tempfile.mkdtemp(prefix=".changed-", dir=self._folder))
        with contextlib.suppress(FileNotFoundError):  # another one has done it
            os.rename(folder, away / folder.name)
        shutil.rmtree(away, ignore_errors=True)

    def prune(self) -> None:
        """Delete the least recently used versions above the limit. Only for a worker that starts: no try may use them."""
        self._folder.mkdir(parents=True, exist_ok=True)
        by_age = sorted((entry.stat().st_mtime, entry) for entry in self._folder.iterdir() if entry.is_dir())
        for _, folder in by_age[: -limits.STORED_CODE]:
            shutil.rmtree(folder, ignore_errors=True)
