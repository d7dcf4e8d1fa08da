"""The processor as a service: it watches a folder and keeps what the control plane knows of its DAG files up to date.

Several processors may watch copies of one bundle. Each says what it sees, and all share the work: a file that changed is leased to
one of them.
"""

from __future__ import annotations

import asyncio
import os
import socket
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import structlog
from watchfiles import Change, awatch

from evenflow.client.execution import ExecutionClient
from evenflow.errors import ApiRefused, ApiUnavailable, SettingsError
from evenflow.process.environment import user_environment
from evenflow.process.owned_template import OwnedTemplate
from evenflow.process.patience import Patience
from evenflow.process.presence import Presence
from evenflow.processor import limits
from evenflow.processor.delivery import deliver
from evenflow.processor.folder import DagFolder, Scan
from evenflow.processor.parsing import parse_file
from evenflow.wire.messages import Beat, BeatAnswer, FileSeen, FilesLease, FilesSeen, Register

TEMPLATE_MODULE = "evenflow.processor.parse_process"
TEMPLATE_TIMEOUT = 60.0  # importing Evenflow takes 0.1 s

# The folder is its owner's: no bytecode is left there, and none is read that is older than an edit of the same second. Sets
# iterate in one order in all processors, so that a DAG that depends on it does not look changed.
_PYTHON = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}

log = structlog.get_logger(__name__)


class ProcessorService:
    """Delivers the DAG files below ``folder`` as ``bundle``; ``token`` is a processor's service token."""

    def __init__(self, api_url: str, token: str, *, name: str, bundle: str, folder: Path) -> None:
        self.name = name
        self._api_url, self._token, self._bundle, self._folder = api_url, token, bundle, folder
        self._state: Literal["active", "draining"] = "active"
        self._loops: list[asyncio.Task[None]] = []
        self._template: OwnedTemplate | None = None
        self._templating = asyncio.Lock()
        self._dags = DagFolder(folder)
        self._scan = Scan(folder, {})
        self._told: dict[str, str] | None = None  # what the control plane was told last
        self._look = asyncio.Event()
        self._work = asyncio.Event()
        self._parsing = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def start(self) -> None:
        if not self._folder.is_dir():
            raise SettingsError(f"The DAG folder {self._folder} does not exist. Create it, or name another one.")
        self._client = ExecutionClient(self._api_url, self._token)
        identity = Register(
            kind="processor",
            name=self.name,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=version("evenflow"),
            detail={"bundle": self._bundle, "folder": str(self._folder)},
        )
        self._presence = Presence(self._client, identity, beat=self._beat, answered=self._answered, lost=self._lost)
        try:
            await self._presence.join()
        except BaseException:
            await self._client.close()
            raise
        loops = {
            "presence": self._presence.keep(),
            "watch": self._watch(),
            "rescan": self._rescan(),
            "look": self._look_for_files(),
        }
        loops |= {f"parser {number}": self._parse() for number in range(limits.PARSERS)}
        self._loops = [asyncio.create_task(loop, name=loop_name) for loop_name, loop in loops.items()]

    async def drain(self) -> None:
        self._state = "draining"
        await self._presence.beat_now()
        await self._idle.wait()

    async def stop(self) -> None:
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        if self._template is not None:
            await self._template.close()
        await self._presence.leave()
        await self._client.close()

    async def failed(self) -> BaseException:
        done, _ = await asyncio.wait(self._loops, return_when=asyncio.FIRST_COMPLETED)
        ended = done.pop()
        return ended.exception() or RuntimeError(f"{ended.get_name()} ended by itself.")

    # -- presence

    def _beat(self) -> Beat:
        return Beat(state=self._state)

    def _answered(self, answer: BeatAnswer) -> None:
        self._state = answer.state if self._state == "active" else "draining"

    def _lost(self) -> None:
        """What is being loaded may be delivered: it is checked against the file's fingerprint."""

    # -- which files there are

    async def _watch(self) -> None:
        async for _ in awatch(self._folder, watch_filter=_matters, step=50, debounce=400, ignore_permission_denied=True):
            self._look.set()

    async def _rescan(self) -> None:
        while True:
            self._look.set()
            await asyncio.sleep(limits.RESCAN)

    async def _look_for_files(self) -> None:
        while True:
            await self._look.wait()
            self._look.clear()
            try:
                self._scan = await asyncio.to_thread(self._dags.scan)
                await self._tell()
            except (OSError, ApiUnavailable) as error:  # not "no files"; the next look may be luckier
                log.warning("folder not looked through", folder=str(self._folder), reason=str(error))
            else:
                self._work.set()

    async def _tell(self) -> None:
        """Only what is new is told: of two processors with different copies, none overrules the other again and again."""
        if self._scan.files != self._told:
            files = [FileSeen(file=file, fingerprint=fingerprint) for file, fingerprint in self._scan.files.items()]
            await self._client.files_seen(FilesSeen(bundle=self._bundle, files=files))
            self._told = self._scan.files

    # -- what they define

    async def _parse(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            patience = Patience()
            while self._state == "active":
                try:
                    leased = await self._lease()
                    if leased is None:
                        break
                    await self._process(leased)
                    patience.renew()
                except (ApiUnavailable, OSError) as error:
                    log.warning("files wait", reason=str(error))
                    await patience.wait()
                except ApiRefused as error:
                    if error.status < 500:
                        raise
                    log.warning("files wait", reason=str(error))
                    await patience.wait()

    async def _lease(self) -> FileSeen | None:
        """A file that changed and that nobody else loads now."""
        service_id = await self._presence.joined()
        wanted = FilesLease(service_id=service_id, bundle=self._bundle, limit=1, lease_s=limits.FILE_LEASE)
        leased = await self._client.lease_files(wanted)
        return leased.files[0] if leased.files else None

    async def _process(self, seen: FileSeen) -> None:
        root = self._scan.root
        if not (root / seen.file).is_file():
            return  # another processor has seen it, in its copy; it will load it when this lease is over
        self._parsing += 1
        self._idle.clear()
        try:
            parsed = await parse_file(await self._warm_template(), str(root), seen.file)
            if parsed.error is None:
                self._dags.learn(seen.file, parsed.modules)
            await deliver(self._client, self._bundle, seen, parsed, root)
            log.info(
                "file loaded", file=seen.file, dags=len(parsed.specs), seconds=round(parsed.seconds, 3), error=bool(parsed.error)
            )
        finally:
            self._parsing -= 1
            if not self._parsing:
                self._idle.set()

    async def _warm_template(self) -> OwnedTemplate:
        async with self._templating:
            if self._template is None or not self._template.alive:
                self._template = await OwnedTemplate.start(
                    TEMPLATE_MODULE,
                    {},
                    env={**user_environment(os.environ), **_PYTHON},
                    load_timeout_s=TEMPLATE_TIMEOUT,
                    memory_limit=limits.MEMORY,
                )
            return self._template


def _matters(change: Change, path: str) -> bool:
    return "__pycache__" not in path
