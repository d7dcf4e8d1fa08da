"""One try on this worker, from its assignment to the report of its exit."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import msgspec
import structlog

from evenflow.errors import XComError
from evenflow.fleet.log_shipper import LogShipper
from evenflow.fleet.masked_log import MaskedLog
from evenflow.fleet.templates import CannotLoad, TemplateKey, TemplatePool
from evenflow.forking.exits import Exit
from evenflow.forking.owned_child import OwnedChild
from evenflow.forking.owned_template import OwnedTemplate
from evenflow.forking.remains import Outrun, end_remains, named, still_running
from evenflow.killpoints import KillPoint, reached
from evenflow.masker import Masker
from evenflow.sdk.xcomarg import RETURN_VALUE
from evenflow.wire.messages import AssetChange, Assignment, Defer, Outcome, Report, StoredObject
from evenflow.worker import limits
from evenflow.worker.memory import MemoryWatch
from evenflow.worker.proxy import TryApi, TryProxy
from evenflow.worker.reporter import Reporter
from evenflow.worker.said import CleaningUp, Progressed, Result, read_head
from evenflow.worker.timers import Timers
from evenflow.worker.values import LargeValues, TryValues
from evenflow.worker.verdict import TryVerdict, judge, verdict_of

# After these ends its task does not begin again by itself, and what it has left in sessions of its own is meant to stay.
_LEAVES = frozenset({"success", "skipped", "deferred"})

# What the process of a try is told of its assignment: everything but the token.
_JOB_FIELDS = tuple(name for name in Assignment.__struct_fields__ if name != "token")

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Tools:
    """What all tries of a worker use."""

    api: TryApi
    templates: TemplatePool
    reporter: Reporter
    logs: LogShipper
    memory: MemoryWatch
    values: LargeValues
    masker: Masker  # knows the secrets of the worker's environment
    api_url: str
    going: asyncio.Event = field(default_factory=asyncio.Event)  # set while the lease holds, so that tries may start
    outrun: set[int] = field(default_factory=set)  # epochs whose processes fork more quickly than they are killed
    left: set[int] = field(default_factory=set)  # marks of tries that have ended and left processes running


class Attempt:
    """Implements :class:`evenflow.forking.owned_child.ChildEvents`. ``on_end`` is called once, when its process is gone."""

    def __init__(self, assignment: Assignment, tools: Tools, on_end: Callable[[Attempt], None]) -> None:
        self.assignment = assignment
        self._tools, self._on_end = tools, on_end
        self._loop = asyncio.get_running_loop()
        self._masker = tools.masker.copy()
        self._values = TryValues(tools.values, assignment.epoch)
        self._settling: asyncio.Task[None] | None = None  # what is to be done between its end and the report of it
        self._storing: TryVerdict | None = None  # a success whose large result is not in object storage yet
        self._log = MaskedLog(tools.logs.open(assignment.token, self._log_is_full), self._masker)
        self._proxy: TryProxy | None = None
        self._child: OwnedChild | None = None
        self._left_by: list[OwnedChild] = []  # that have ended, and may have left others
        self._loading: asyncio.Task[None] | None = None
        self._started_at: float | None = None
        self._timers = Timers()
        self._frozen_at: float | None = None
        self._said: TryVerdict | None = None
        self._ended_for: str | None = None
        self._cleans_up = False  # its process said that it stops what it has started outside
        self._spoke = False  # its process has said what became of it
        self._ended_first: Exit | None = None  # how the process ended after which another one stops what is outside
        self._abandoned = False
        self._given_up = False

    @property
    def epoch(self) -> int:
        return self.assignment.epoch

    @property
    def has_started(self) -> bool:
        return self._started_at is not None

    @property
    def leaves(self) -> bool:
        """It has ended in the ordinary way, and what it has left may stay once its exit is stored."""
        return bool(self._left_by)

    def begin(self) -> None:
        file = TemplateKey(self.assignment.code_hash, self.assignment.file, self.assignment.default_timezone)
        template = self._tools.templates.ready(file)
        if template is not None and self._tools.going.is_set():
            self._fork(template)
        else:
            self._timers.after(limits.START_WITHIN, self._come_too_late)
            self._loading = self._loop.create_task(self._begin_cold(file))

    def end(self, reason: str) -> None:
        """End the process group: SIGTERM, after a grace SIGKILL. The exit is reported with ``reason``. Again is no harm."""
        if self._ended_for is None:
            self._ended_for = reason
            if self._storing is not None:
                self._store_no_more("failed", reason)
            elif self._child is not None:
                self._child.send_signal(signal.SIGTERM)
                self._timers.after(limits.TERM_GRACE, self._kill_unless_it_cleans_up)
                self._timers.after(limits.CLEAN_UP_GRACE, self._kill)
            elif self._loading is not None and not self._owes_clean_up:
                self._loading.cancel()
                self._conclude(TryVerdict(outcome="failed", reason=f"{reason}, before it was started"))

    def freeze(self, since: float) -> None:
        """Its template has stopped it; that time counts for nothing."""
        self._frozen_at = since
        self._timers.pause(since)
        self._note("frozen: this worker has no answer from the control plane, which may have given the try to another one")

    def go_on(self) -> None:
        """Its template lets it, or will as soon as it can."""
        if self._frozen_at is not None:
            stood_s, self._frozen_at = self._loop.time() - self._frozen_at, None
            self._timers.go_on()
            self._note(f"goes on after {stood_s:.1f} s; they count toward no timeout")

    def give_up(self, reason: str) -> None:
        """End it at once, through no fault of its own."""
        self._given_up = self._ended_for is None or self._owes_clean_up
        self._ended_for = self._ended_for or reason
        if self._storing is not None:
            self._store_no_more("lost", reason)
        elif self._child is not None:
            self._kill()
        elif self._loading is not None:
            self._loading.cancel()
            self._conclude(TryVerdict(outcome="lost", reason=reason))

    def abandon(self) -> None:
        """The try is not this worker's any more: kill it at once and say nothing."""
        self._abandoned = True
        self._tools.reporter.abandon(self.epoch)
        if self._storing is not None:
            self._store_no_more("lost", None)
        elif self._child is not None:
            self._kill()
        elif self._loading is not None:
            self._loading.cancel()
            self._finish()

    # -- its process

    def started(self, pid: int) -> None:
        if self._started_at is None:
            self._started_at = self._loop.time()
            self._tools.reporter.started(self.epoch, self.assignment.token)
        resumed, timeout = self.assignment.resumed, self.assignment.execution_timeout
        if self._ended_for is not None:
            self._timers.after(limits.CLEAN_UP, self._kill)
        elif resumed is not None and resumed.purpose == "clean_up":
            self._timers.after(limits.CLEAN_UP, lambda: self.end(f"on_kill took longer than {limits.CLEAN_UP:g} s"))
        elif timeout is not None:
            left = timeout if resumed is None else max(timeout - resumed.spent_s, 0.0)
            self._timers.after(left, lambda: self.end(f"execution_timeout of {timeout:g} s exceeded"))

    def frame(self, head: bytes, body: bytes) -> None:
        match read_head(head):
            case Result() as result:
                verdict, self._spoke = verdict_of(result, body), True
                if self._ended_for is None or verdict.defer is not None:
                    self._said = verdict  # else too late: the reason of its end stands; what it waits for is never lost (R-DQ9)
            case CleaningUp():
                if not self._cleans_up:
                    self._cleans_up = True
                    self._note(f"stopping what it has started outside, for up to {limits.CLEAN_UP_GRACE:g} s")
            case Progressed():
                self._proxy_of_child().show_progress(body)
            case question:
                self._proxy_of_child().serve(question, body)

    def output(self, data: bytes) -> None:
        self._log.write(data)

    def exited(self, end: Exit) -> None:
        if self._child is not None and not end.alone:
            self._left_by.append(self._child)
        if self._started_at is None and (self._ended_for is None or self._owes_clean_up):
            self._conclude(TryVerdict(outcome="cannot_start", reason=end.lost))
            return
        if self._owes_clean_up and self._ended_first is None:
            self._ended_first = end
            self._clean_up()
            return
        if self._owes_clean_up and end.lost:
            self._conclude(TryVerdict(outcome="lost", reason=end.lost))
            return
        end = self._ended_first or end
        evidence = self._tools.memory.evidence() if end.status == -signal.SIGKILL else None
        verdict = judge(self._said, end, ended_for=self._ended_for, out_of_memory=evidence)
        self._conclude(msgspec.structs.replace(verdict, outcome="lost") if self._given_up and self._said is None else verdict)

    # -- inside

    @property
    def _owes_clean_up(self) -> bool:
        """It has waited for something outside, and is ended before its process could go on with it, or stop it (R-DQ9)."""
        resumed, ended = self.assignment.resumed, self._ended_for is not None and not self._given_up and not self._abandoned
        return ended and resumed is not None and resumed.purpose != "clean_up" and not self._spoke and not self._cleans_up

    def _proxy_of_child(self) -> TryProxy:
        if self._proxy is None:
            assert self._child is not None
            self._proxy = TryProxy(self._tools.api, self.assignment.token, self._child, self._masker, self._values, self._note)
        return self._proxy

    def _clean_up(self) -> None:
        """In another process, as for a try that is ended while it is deferred."""
        self._note("another process stops what it has started outside")
        if self._proxy is not None:
            self._proxy.close()
        self._timers.end()
        self._child, self._proxy, self._timers = None, None, Timers()
        self.begin()

    async def _begin_cold(self, file: TemplateKey) -> None:
        try:
            await self._tools.going.wait()
            while (template := self._tools.templates.ready(file)) is None:
                await self._tools.templates.load(file)
                await self._tools.going.wait()
        except CannotLoad as error:
            self._log.write(error.output.encode())
            self._conclude(TryVerdict(outcome="cannot_start", reason=str(error)))
        else:
            self._fork(template)

    def _fork(self, template: OwnedTemplate) -> None:
        job = {name: msgspec.to_builtins(getattr(self.assignment, name)) for name in _JOB_FIELDS}
        if self.assignment.resumed is not None:
            self._masker.add(self.assignment.resumed.secrets)
        if self._owes_clean_up:
            job["resumed"] |= {"purpose": "clean_up", "reason": self._ended_for}
        job["api_url"] = self._tools.api_url
        reached(KillPoint.TRY_FORKING)
        try:
            self._child = template.begin(job, self, decides=True)
        except OSError as error:
            self._conclude(TryVerdict(outcome="cannot_start", reason=f"the worker's host could not start a process: {error}"))
        else:
            reached(KillPoint.TRY_FORKED)

    def _kill(self) -> None:
        assert self._child is not None
        self._child.send_signal(signal.SIGKILL)

    def _kill_unless_it_cleans_up(self) -> None:
        if not self._cleans_up:
            self._kill()

    def _log_is_full(self, full: bool) -> None:
        if self._child is not None:
            if full:
                self._child.pause_output()
            else:
                self._child.resume_output()

    def _come_too_late(self) -> None:
        if self._child is None and self._loading is not None and (self._ended_for is None or self._owes_clean_up):
            self._loading.cancel()
            self._conclude(
                TryVerdict(outcome="cannot_start", reason=f"it was not started within {limits.START_WITHIN:g} s of its assignment")
            )

    def _note(self, what: str) -> None:
        """Into the log of the try."""
        self._log.write(f"\n-- {what} --\n".encode())

    def _conclude(self, verdict: TryVerdict) -> None:
        if self._left_by:
            self._settle_by(self._settle_remains(verdict))
        else:
            self._settle(verdict)

    def _settle_by(self, work: Coroutine[Any, Any, None]) -> None:
        self._settling = self._loop.create_task(self._settled_by(work))

    async def _settled_by(self, work: Coroutine[Any, Any, None]) -> None:
        """A defect of ours ends the try, too: one of which nobody hears would be waited for."""
        try:
            await work
        except Exception as error:
            log.exception("the end of a try could not be told", task=self.assignment.task_id, epoch=self.epoch)
            self._report(TryVerdict(outcome="failed", reason=f"its end could not be told, by a defect of Evenflow: {error!r}"))

    async def _settle_remains(self, verdict: TryVerdict) -> None:
        """R-CS9: upon the report of its exit its task may begin again, unless it has ended in the ordinary way."""
        if self._ends_ordinarily(verdict):
            await self._tell_left()
        if not self._ends_ordinarily(verdict):  # it may have been ended or taken back meanwhile
            await self.end_left()
        self._settle(verdict)

    def _ends_ordinarily(self, verdict: TryVerdict) -> bool:
        return verdict.outcome in _LEAVES and self._ended_for is None and not self._abandoned

    async def _tell_left(self) -> None:
        """Its author may not know. What is in the sessions of its own processes is being killed."""
        marks = {child.mark for child in self._left_by}
        asked = marks | self._tools.left
        sessions = {child.pid for child in self._left_by if child.pid is not None}
        try:
            running = await asyncio.to_thread(still_running, asked, sessions)
        except OSError as error:  # too many files are open: its end is told all the same
            self._note(f"what it has left running cannot be found: {error}")
            return
        self._tools.left.difference_update(asked - running.keys())
        self._tools.left.update(marks & running.keys())
        if left := [pid for mark in marks for pid in running.get(mark, ())]:
            self._note(f"left {len(left)} process{'' if len(left) == 1 else 'es'} running: {named(left)}")

    async def end_left(self) -> None:
        """Whatever its processes have left in sessions of their own."""
        if left := await self._killed():
            names = ", ".join(map(str, left))
            self._note(f"processes that it has started could not be killed, and are still there: {names}")
            log.warning("processes of a try could not be killed", task=self.assignment.task_id, epoch=self.epoch, pids=names)
        self.let_go()

    async def _killed(self) -> list[int]:
        """Those that hang. However long the others take: beside them the task must not begin again."""
        try:
            while True:
                try:
                    return await asyncio.to_thread(end_remains, {child.mark for child in self._left_by})
                except Outrun as outrun:
                    self._tell(outrun)
                await asyncio.sleep(limits.OUTRUN_PAUSE)
        finally:
            self._tools.outrun.discard(self.epoch)

    def _tell(self, outrun: Outrun) -> None:
        log.warning("a try does not end", reason=str(outrun), task=self.assignment.task_id, epoch=self.epoch)
        if self.epoch not in self._tools.outrun:
            self._tools.outrun.add(self.epoch)
            self._note(f"{outrun}; this worker keeps trying, and reports the end of the try when all are gone")

    def let_go(self) -> None:
        """What they have left may stay, or is gone."""
        for child in self._left_by:
            child.let_go()
        self._left_by.clear()

    def _settle(self, verdict: TryVerdict) -> None:
        if verdict.result is not None and self._tools.values.takes_time(verdict.result) and not self._abandoned:
            self._storing = verdict
            self._settle_by(self._store_result(verdict, verdict.result))
        elif verdict.defer is not None and not self._abandoned:
            self._settle_by(self._store_log(verdict, verdict.defer))
        else:
            self._report(verdict)

    async def _store_result(self, verdict: TryVerdict, result: bytes) -> None:
        """The exit is reported when its large result is looked through, and in object storage or cannot be put there."""
        try:
            push = await self._values.prepared(RETURN_VALUE, result, self._masker)
        except XComError as error:
            self._report(msgspec.structs.replace(verdict, outcome="failed", reason=str(error), result=None))
        else:
            reached(KillPoint.RESULT_STORED)
            self._report(msgspec.structs.replace(verdict, result=push.value), push.stored, secret=push.secret)

    def _store_no_more(self, outcome: Outcome, reason: str | None) -> None:
        """Nobody waits for object storage, which may never answer."""
        assert self._settling is not None
        assert self._storing is not None
        self._settling.cancel()
        self._report(TryVerdict(outcome=outcome, reason=reason, exit_code=self._storing.exit_code))

    async def _store_log(self, verdict: TryVerdict, defer: Defer) -> None:
        """A deferral is reported when its log is stored: what its trigger and its return log comes after that, and once it has
        returned, its first part is taken no more.
        """
        self._log.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limits.LOG_STORED):
                await self._log.shipped()
        defer.secrets = self._masker.found_in(msgspec.json.encode([defer.trigger_kwargs, defer.kwargs]))
        self._report(verdict)

    def _report(self, verdict: TryVerdict, stored: StoredObject | None = None, *, secret: bool | None = None) -> None:
        """``secret``: whether the result holds one, where that is known."""
        if secret is None:
            secret = verdict.result is not None and self._masker.finds_in(verdict.result)
        if not self._abandoned:
            reached(KillPoint.TRY_ENDED)
            self._tools.reporter.exited(
                self.epoch,
                Report(
                    token=self.assignment.token,
                    kind="exit",
                    outcome=verdict.outcome,
                    ran_s=None if self._started_at is None else self._loop.time() - self._started_at,
                    exit_code=verdict.exit_code,
                    reason=None if verdict.reason is None else self._masker.mask_text(_sayable(verdict.reason)),
                    error_types=[_sayable(name) for name in verdict.error_types],
                    result=verdict.result,
                    stored=stored,
                    secret=secret,
                    delay_s=verdict.delay_s,
                    produced=[self._shown(change) for change in verdict.produced],
                    skip=verdict.skip,
                    defer=verdict.defer,
                ),
            )
        self._finish()

    def _shown(self, change: AssetChange) -> AssetChange:
        """What an event says is read by everybody."""
        return msgspec.structs.replace(change, extra=self._masker.mask_value(change.extra), uri=self._masker.mask_text(change.uri))

    def _finish(self) -> None:
        self._timers.end()
        if self._proxy is not None:
            self._proxy.close()
        self._log.close()
        self._on_end(self)


def _sayable(text: str) -> str:
    """An error may quote file names and the like that are no Unicode, and no message can carry that."""
    return text.encode(errors="backslashreplace").decode()
