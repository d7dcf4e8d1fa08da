"""One DAG file, loaded in a child of a warm template, whatever the file does there."""

from __future__ import annotations

import asyncio
import json
import signal
from dataclasses import dataclass, field

import msgspec

from evenflow.process.exits import Exit, describe_exit
from evenflow.process.frames import Header
from evenflow.process.owned_child import OwnedChild
from evenflow.process.owned_template import OwnedTemplate
from evenflow.processor import limits


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a file defines, or why that cannot be known."""

    seconds: float
    specs: list[str] = field(default_factory=list)  # DagSpec JSON
    modules: list[str] = field(default_factory=list)  # paths below the root, the file itself included
    error: str | None = None
    error_line: int | None = None


class _Answer(msgspec.Struct):
    tell: str
    modules: list[str] = []
    trace: str | None = None
    line: int | None = None


async def parse_file(template: OwnedTemplate, root: str, file: str) -> Parsed:
    """Load ``file``, for ``limits.PARSE_TIMEOUT`` at most. Raises :class:`OSError` when no process can be started for it."""
    parsing = _Parsing(file)
    child = template.begin({"root": root, "file": file, "memory": limits.MEMORY}, parsing)
    try:
        await asyncio.wait({parsing.parsed}, timeout=limits.PARSE_TIMEOUT)
        if not parsing.parsed.done():
            await parsing.abort(child)
        return await parsing.parsed
    finally:
        child.send_signal(signal.SIGKILL)


class _Parsing:
    """Implements :class:`evenflow.process.owned_child.ChildEvents`."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._loop = asyncio.get_running_loop()
        self.parsed: asyncio.Future[Parsed] = self._loop.create_future()
        self._begun_at = self._loop.time()
        self._said: tuple[_Answer, bytes] | None = None
        self._printed = bytearray()
        self._aborted = False

    async def abort(self, child: OwnedChild) -> None:
        """End a process that takes too long; the interpreter's fault handler prints where it is."""
        self._aborted = True
        child.send_signal(signal.SIGABRT)
        await asyncio.wait({self.parsed}, timeout=limits.ABORT_GRACE)
        child.send_signal(signal.SIGKILL)

    def started(self, pid: int) -> None:
        self._begun_at = self._loop.time()

    def frame(self, header: Header, body: bytes) -> None:
        try:
            self._said = (msgspec.convert(header, _Answer), body)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None

    def output(self, data: bytes) -> None:
        self._printed += data
        del self._printed[: -limits.OUTPUT_KEPT]

    def exited(self, end: Exit) -> None:
        if not self.parsed.done():
            self.parsed.set_result(self._result(end))

    def _result(self, end: Exit) -> Parsed:
        seconds = self._loop.time() - self._begun_at
        if self._said is None or self._aborted:
            why = f"it was not loaded after {limits.PARSE_TIMEOUT:g} s" if self._aborted else describe_exit(end)
            printed = self._printed.decode(errors="replace")
            return Parsed(seconds, error=f"{self._file} cannot be loaded: {why}.\n{printed}")
        answer, body = self._said
        if answer.tell == "parsed":
            return Parsed(seconds, specs=json.loads(body), modules=answer.modules)
        return Parsed(seconds, error=answer.trace, error_line=answer.line)
