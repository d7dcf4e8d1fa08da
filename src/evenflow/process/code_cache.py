"""DAG code on this host: fetched once by its hash, kept in ``<home>/code/<hash>``."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Protocol

from evenflow.process import limits
from evenflow.wire.code import unpack


class CodeApi(Protocol):
    async def get_code(self, code_hash: str) -> bytes: ...


class CodeCache:
    def __init__(self, folder: Path, api: CodeApi) -> None:
        self._folder, self._api = folder, api

    async def fetch(self, code_hash: str) -> Path:
        """The folder with the code, checked against its hash. Raises what the API's client does, and :class:`CodeArchiveError`."""
        folder = self._folder / code_hash
        if folder.is_dir():
            os.utime(folder)  # used: pruning spares it
        else:
            archive = await self._api.get_code(code_hash)
            await asyncio.to_thread(unpack, archive, folder, code_hash=code_hash)
        return folder

    def prune(self) -> None:
        """Delete the least recently used versions above the limit. Only for a worker that starts: no try may use them."""
        self._folder.mkdir(parents=True, exist_ok=True)
        by_age = sorted((entry.stat().st_mtime, entry) for entry in self._folder.iterdir() if entry.is_dir())
        for _, folder in by_age[: -limits.STORED_CODE]:
            shutil.rmtree(folder, ignore_errors=True)
