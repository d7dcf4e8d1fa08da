"""Loads one DAG file in a child of a warm template, whatever the file does there."""

from __future__ import annotations

import asyncio
import heapq
import os
import re
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec

from evenflow.core import metrics
from evenflow.core.meter import Meter
from evenflow.core.settings import UTC
from evenflow.errors import ApiUnavailable
from evenflow.forking.exits import Exit, describe_exit
from evenflow.forking.frames import FrameHeader
from evenflow.forking.owned_child import OwnedChild
from evenflow.forking.owned_template import OwnedTemplate
from evenflow.masker import masker_of
from evenflow.membership.given_values import GivenValues, ValueApi
from evenflow.processor import limits
from evenflow.processor import observations as seen
from evenflow.sdk.loading import loader
from evenflow.sdk.secrets.masking import MAX_TAIL
from evenflow.telemetry.observing import observe
from evenflow.wire.code import checked_path
from evenflow.wire.messages import AskedValue

NEVER_CALLED = "A function makes a DAG and is never called, so there is no such DAG"  # beginning of a warning
NO_PASTS: Mapping[str, tuple[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseLimits:
    """Limits of one file; settings of the processor."""

    timeout_s: float = limits.PARSE_TIMEOUT
    memory_mib: int = limits.MEMORY_MIB

    @property
    def memory_bytes(self) -> int:
        return self.memory_mib * 2**20


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a file defines, or why that is unknown."""

    seconds: float
    specs: list[str] = field(default_factory=list)  # DagSpec JSON
    forecasts: dict[str, str] = field(default_factory=dict)  # JSON of core/forecast, by DAG
    files: list[str] = field(default_factory=list)  # paths below the root: modules, including the file itself, and data
    watched: list[str] = field(default_factory=list)  # paths below the root that decide which data exists
    error: str | None = None
    summary: str | None = None  # the error in one line, if it is an exception
    error_line: int | None = None
    warnings: list[str] = field(default_factory=list)  # each with its place
    asked: list[AskedValue] = field(default_factory=list)  # connections and variables, while it was loaded

    @property
    def error_in_short(self) -> str:
        """The error for a line of a log or of a list: the summary of an exception, else all that is known."""
        return self.summary or (self.error or "").strip()


class _ParseAnswer(msgspec.Struct):
    tell: Literal["parsed", "failed", "asks"]
    kind: str = ""  # of a value that it asks for
    name: str = ""
    files: list[str] = []
    watched: list[str] = []
    warnings: list[str] = []
    summary: str | None = None
    trace: str | None = None
    line: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] | None = None


class _Defined(msgspec.Struct):
    specs: list[str] = []
    forecasts: dict[str, str] = {}


_ANSWER = msgspec.json.Decoder(_ParseAnswer)


async def parse_file(
    template: OwnedTemplate,
    root: str,
    file: str,
    within: ParseLimits,
    *,
    default_timezone: str = UTC,
    environment: str = "",
    pasts: Mapping[str, tuple[str, str]] = NO_PASTS,
    values: ValueApi | None = None,
) -> Parsed:
    """Loads ``file`` in a child of a template whose children have ``within.memory_bytes``. Times without a zone are in
    ``default_timezone``; the template is of this ``environment``. ``pasts`` are the data intervals that were scheduled last, by
    DAG, in ISO 8601. ``values`` gives the connections and variables that the file asks for; without it there are none.

    Raises :class:`OSError` when no process can be started for it, and :class:`ApiUnavailable` when a value cannot be asked for.
    """
    job = {
        "root": root,
        "file": file,
        "memory_mib": within.memory_mib,
        "default_timezone": default_timezone,
        "environment": environment,
        "pasts": dict(pasts),
        "asks": values is not None,
    }
    return await _parsed(template, job, _Parsing(file, within, values), within)


async def plugin_warnings(template: OwnedTemplate, environment: str, within: ParseLimits) -> list[str]:
    """Returns what the plugins of the template's ``environment`` have that has no place here, and which cannot be loaded. Raises
    :class:`OSError` when no process can be started.
    """
    parsing = _Parsing(f"A plugin of environment {environment!r}", within)
    parsed = await _parsed(template, {"plugins": True}, parsing, within)
    return parsed.warnings if parsed.error is None else [parsed.error_in_short[: limits.WARNING_KEPT]]


async def _parsed(template: OwnedTemplate, job: FrameHeader, parsing: _Parsing, within: ParseLimits) -> Parsed:
    child = template.begin(job, parsing)
    parsing.child = child
    try:
        await asyncio.wait({parsing.parsed}, timeout=within.timeout_s)
        if not parsing.parsed.done():
            await parsing.abort(child)
        await asyncio.wait({parsing.parsed}, timeout=limits.END_GRACE)
        if parsing.unanswered is not None:
            raise parsing.unanswered
        return parsing.parsed.result() if parsing.parsed.done() else parsing.lost()
    finally:
        child.send_signal(signal.SIGKILL)
        parsing.answers_no_more()


def _as_told_by_handler(printed: str) -> str:
    """Returns the interpreter's fault handler's report of where the file was, without Evenflow's own frames."""
    told = re.sub(
        r"Fatal Python error: Aborted\n+(?:Current )?[Tt]hread \w+.*\n", "It was here, the innermost call first:\n", printed
    )
    return re.split(rf'(?m)^  File "{re.escape(loader.__file__)}"', told)[0]


class _Parsing:
    """Implements :class:`evenflow.forking.owned_child.ChildEvents`."""

    child: OwnedChild

    def __init__(self, file: str, within: ParseLimits, values: ValueApi | None = None) -> None:
        self._file, self._within = file, within
        self._loop = asyncio.get_running_loop()
        self.parsed: asyncio.Future[Parsed] = self._loop.create_future()
        self._begun_at = self._loop.time()
        self._said: tuple[_ParseAnswer, bytes] | None = None
        self._printed = bytearray()
        self._printed_bytes = 0
        self._stopped: str | None = None  # the limit at which it was stopped
        self._masker = masker_of(os.environ)
        self._given = None if values is None else GivenValues(values, file, self._masker)
        self._answering: asyncio.Task[None] | None = None
        self.unanswered: ApiUnavailable | None = None  # the API was away when a value was asked for

    async def abort(self, child: OwnedChild) -> None:
        """Ends a process that takes too long; the interpreter's fault handler prints where it is."""
        self._stopped = (
            f"it was not loaded after {self._within.timeout_s:g} s. Move what takes so long into a task, or raise the limit "
            "(EVENFLOW_PARSE_TIMEOUT, in seconds, for the processor)"
        )
        child.send_signal(signal.SIGABRT)
        await asyncio.wait({self.parsed}, timeout=limits.ABORT_GRACE)
        child.send_signal(signal.SIGKILL)

    def started(self, pid: int) -> None:
        self._begun_at = self._loop.time()

    def frame(self, head: bytes, body: bytes) -> None:
        said = _ANSWER.decode(head)
        if said.tell != "asks":
            self._said = (said, body)
        elif self._given is not None and (self._answering is None or self._answering.done()):  # a process asks one at a time
            self._answering = self._loop.create_task(self._answer(self._given, {"kind": said.kind, "name": said.name}))

    async def _answer(self, given: GivenValues, question: FrameHeader) -> None:
        try:
            self.child.send(await given.answer(question))
        except ApiUnavailable as error:
            self.unanswered = error
            self.child.send_signal(signal.SIGKILL)

    def answers_no_more(self) -> None:
        if self._answering is not None:
            self._answering.cancel()

    def output(self, data: bytes) -> None:
        self._printed_bytes += len(data)
        if self._printed_bytes > limits.OUTPUT and self._stopped is None:
            self._stopped = (
                f"it printed more than {limits.OUTPUT // 2**20} MiB. A DAG file should print nothing; this limit is fixed"
            )
            self.child.send_signal(signal.SIGKILL)
        self._printed += data
        del self._printed[: -(limits.OUTPUT_KEPT + MAX_TAIL)]

    def exited(self, end: Exit) -> None:
        if self.parsed.done():
            return
        try:
            result = self._result(end)
        except Exception as error:  # the process runs author code and can send anything; the file still gets a result
            result = self._failed(f"its process told nonsense: {type(error).__name__}: {error}")
        self.parsed.set_result(result)

    def lost(self) -> Parsed:
        """Returns the result for a process whose end is never reported."""
        return self._failed("its process was killed, and its end did not show")

    def _failed(self, why: str) -> Parsed:
        seconds = self._loop.time() - self._begun_at
        printed = self._masker.mask_text(self._printed.decode(errors="replace"))[-limits.OUTPUT_KEPT :]
        if self._stopped:
            printed = _as_told_by_handler(printed)
        return self._masked(Parsed(seconds, error=f"{self._file} cannot be loaded: {why}.\n{printed}"))

    def _masked(self, parsed: Parsed) -> Parsed:
        """Returns what people will see, without the secrets of this host's environment. Texts are masked before they are cut: half
        a secret is not known.
        """
        mask, error = self._masker.mask_text, parsed.error

        def begin(text: str, most: int) -> str:
            return mask(text[: most + MAX_TAIL])[:most]

        return replace(
            parsed,
            error=None if error is None else mask(error[-limits.ERROR_KEPT - MAX_TAIL :])[-limits.ERROR_KEPT :],
            summary=None if parsed.summary is None else begin(parsed.summary, limits.ERROR_KEPT),
            warnings=[begin(warning, limits.WARNING_KEPT) for warning in parsed.warnings[: limits.WARNINGS]],
            asked=[] if self._given is None else self._given.asked(),
        )

    def _shown_secrets(self, specs: Iterable[str]) -> list[str]:
        if self._given is None or not self._given.asked() or not any(self._masker.finds_in(spec.encode()) for spec in specs):
            return []
        return [
            f"{self._file}:1: What this file defines has a secret in it that it got while it was loaded, and people see it. "
            "Use a template instead, such as {{ conn.NAME.password }} or {{ var.value.NAME }}."
        ]

    def _result(self, end: Exit) -> Parsed:
        seconds = self._loop.time() - self._begun_at
        if self._said is None or self._stopped:
            return self._failed(self._stopped or describe_exit(end))
        answer, body = self._said
        for path in answer.files:
            checked_path(path)
        watched = [path for path in answer.watched if "\0" not in path]
        if answer.tell == "parsed":
            defined = msgspec.json.decode(body, type=_Defined)
            parsed = Parsed(
                seconds,
                specs=defined.specs,
                forecasts=defined.forecasts,
                files=answer.files,
                watched=watched,
                warnings=[*self._shown_secrets(defined.specs), *answer.warnings],
            )
        else:
            parsed = Parsed(
                seconds,
                watched=watched,
                error=answer.trace or f"{self._file} cannot be loaded, and its process does not say why.",
                summary=answer.summary,
                error_line=answer.line,
                warnings=answer.warnings,
            )
        return self._masked(parsed)


class Parses:
    """How long DAG files take to load, for the metrics: a distribution of all, and the slowest by name."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._last: dict[tuple[str, str], tuple[float, float]] = {}  # bundle and file: seconds, and when
        meter.family(metrics.FILE_SECONDS, lambda: [(file, seconds) for file, (seconds, _) in list(self._last.items())])
        meter.family(metrics.FILE_TIME, lambda: [(file, at) for file, (_, at) in list(self._last.items())])

    def add(self, bundle: str, file: str, parsed: Parsed) -> None:
        observe(seen.file_parsed(parsed.seconds, parsed.error is not None), self._meter)
        self._last[bundle, file] = (parsed.seconds, time.time())
        if len(self._last) > 2 * limits.FILES_MEASURED:
            self._last = dict(heapq.nlargest(limits.FILES_MEASURED, self._last.items(), key=lambda item: item[1][0]))
