"""One bundle of a processor: it is scanned when something may have changed, and reported to the control plane."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from watchfiles import Change, awatch

from evenflow.client.execution import ExecutionClient
from evenflow.errors import ApiUnavailable
from evenflow.processor import limits
from evenflow.processor import observations as seen
from evenflow.processor.folder import DagFolder, Scan
from evenflow.processor.ignore import not_read
from evenflow.processor.parsing import Parsed
from evenflow.processor.sources import Source
from evenflow.telemetry.observing import observe
from evenflow.wire.messages import FileSeen, FilesSeen


class WatchedBundle:
    """Run all of :meth:`loops`. ``scan`` is the last scan; ``news`` is called after each, because there may be something to parse.
    ``airflows``: its environment may have Airflow.
    """

    def __init__(self, source: Source, client: ExecutionClient, news: Callable[[], None], *, airflows: bool = False) -> None:
        self.name = source.name
        self._source, self._client, self._news = source, client, news
        self._dags = DagFolder(source.folder, airflows=airflows)
        self.scan = Scan(source.folder, {})
        self._told: dict[str, str] | None = None  # what was last reported to the control plane
        self._look = asyncio.Event()
        self._unreadable: str | None = None

    def loops(self) -> dict[str, Coroutine[Any, Any, None]]:
        fetches = self._source.refresh_s is not None
        return {
            f"news of {self.name}": self._refresh() if fetches else self._watch(),
            f"rescan of {self.name}": self._rescan(),
            f"look at {self.name}": self._look_for_files(),
        }

    def learn(self, file: str, parsed: Parsed) -> None:
        """Learns what ``file`` needed when it was loaded, if that is known."""
        if parsed.error is None or parsed.watched:
            self._dags.learn(file, parsed.files, parsed.watched)

    def revision(self) -> str | None:
        return self._source.revision(self.scan.root)

    def state(self) -> dict[str, Any]:
        state = self._source.state()
        error = state.get("error") or self._unreadable
        return {"name": self.name, **state, "revision": self.revision(), "files": len(self.scan.files), "error": error}

    async def _watch(self) -> None:
        async for _ in awatch(self._source.folder, watch_filter=_matters, step=50, debounce=400, ignore_permission_denied=True):
            self._look.set()

    async def _refresh(self) -> None:
        assert self._source.refresh_s is not None
        while True:
            await self._source.refresh()
            self._look.set()
            await asyncio.sleep(self._source.refresh_s)

    async def _rescan(self) -> None:
        if self._source.refresh_s is None:  # otherwise the first fetch asks for a scan
            self._look.set()
        while True:
            await asyncio.sleep(limits.RESCAN)
            self._look.set()

    async def _look_for_files(self) -> None:
        while True:
            await self._look.wait()
            self._look.clear()
            try:
                before, self.scan = self.scan, await asyncio.to_thread(self._dags.scan)
                for path in {*self.scan.unread}.difference(before.unread):
                    observe(seen.ignore_file_not_read(self.name, path, not_read(self.scan.root / path)))
                self._unreadable = None
                await self._tell()
            except (OSError, ApiUnavailable) as error:  # this does not mean "no files"; a later scan may succeed
                if isinstance(error, OSError):
                    self._unreadable = str(error)
                observe(seen.folder_not_read(self.name, str(self._source.folder), str(error)))
            else:
                self._news()

    async def _tell(self) -> None:
        """Reports changes only, so that two processors with different copies do not overrule each other again and again."""
        if self.scan.files != self._told:
            files = [FileSeen(file=file, fingerprint=fingerprint) for file, fingerprint in self.scan.files.items()]
            await self._client.files_seen(FilesSeen(bundle=self.name, files=files))
            self._told = self.scan.files


def _matters(change: Change, path: str) -> bool:
    return "__pycache__" not in path
