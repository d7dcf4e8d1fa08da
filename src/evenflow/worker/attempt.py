"""One try on this worker, from its assignment to the report of its exit."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, assert_never

import msgspec

from evenflow.core.deferral import Purpose
from evenflow.core.ending import AssetChange, Defer, Ending, OutcomeName
from evenflow.errors import XComError
from evenflow.forking.exits import Exit, describe_exit
from evenflow.forking.owned_child import OwnedChild
from evenflow.forking.owned_template import OwnedTemplate, Reuse
from evenflow.killpoints import KillPoint, reached
from evenflow.masker import Masker
from evenflow.membership.log_shipper import LogShipper
from evenflow.membership.masked_log import MaskedLog
from evenflow.membership.templates import CannotLoad, TemplateKey, TemplatePool
from evenflow.sdk.xcomarg import RETURN_VALUE
from evenflow.telemetry.observing import observe
from evenflow.wire.large_values import LargeValues
from evenflow.wire.messages import Assignment, Report, StoredObject
from evenflow.worker import limits
from evenflow.worker import observations as seen
from evenflow.worker.attempt_states import Deed, Phase, TryEvent, TryState, Wish, react
from evenflow.worker.cgroups import CannotLimit
from evenflow.worker.leftovers import Leftovers
from evenflow.worker.memory import MemoryWatch
from evenflow.worker.proxy import TryApi, TryProxy
from evenflow.worker.reporter import Reporter
from evenflow.worker.resources import Limits, TryGroup
from evenflow.worker.said import CleaningUp, Progressed, Result, ending_of, judge, read_head
from evenflow.worker.timers import Timers
from evenflow.worker.values import TryValues

# After these ends the task does not begin again by itself, and processes that it left in their own sessions may stay.
_LEAVES = frozenset({"success", "skipped", "deferred"})

# The fields of its assignment that the process of a try gets: all but the token.
_JOB_FIELDS = tuple(name for name in Assignment.__struct_fields__ if name != "token")


@dataclass(frozen=True, slots=True)
class Tools:
    """Objects that all tries of a worker share."""

    api: TryApi
    templates: TemplatePool
    reporter: Reporter
    logs: LogShipper
    memory: MemoryWatch
    limits: Limits  # of tries whose tasks ask for limits
    values: LargeValues
    masker: Masker  # knows the secrets of the worker's environment
    api_url: str
    reuse: Callable[[str], Reuse]  # of tries of this DAG, if their tasks allow it
    going: asyncio.Event = field(default_factory=asyncio.Event)  # set while the lease holds, so that tries may start
    outrun: set[int] = field(default_factory=set)  # epochs whose processes fork more quickly than they are killed
    left: set[int] = field(default_factory=set)  # marks of ended tries that left processes running


class Attempt:
    """Implements :class:`evenflow.forking.owned_child.ChildEvents`. ``on_end`` is called once, when its process is gone.
    :mod:`evenflow.worker.attempt_states` defines its reactions.
    """

    def __init__(self, assignment: Assignment, tools: Tools, on_end: Callable[[Attempt], None]) -> None:
        self.assignment = assignment
        resumed = assignment.resumed
        self.state = TryState(resumes=resumed is not None and resumed.purpose != Purpose.CLEAN_UP)
        self._tools, self._on_end = tools, on_end
        self._loop = asyncio.get_running_loop()
        self._masker = tools.masker.copy()
        self._values = TryValues(tools.values, assignment.epoch)
        self._settling: asyncio.Task[None] | None = None  # work between its end and the report of it
        self._log = MaskedLog(tools.logs.open(assignment.token, self._log_is_full), self._masker)
        self._proxy: TryProxy | None = None
        self._child: OwnedChild | None = None
        self._group: TryGroup | None = None
        self.leftovers = Leftovers(assignment, tools.outrun, tools.left, self._note)
        self._loading: asyncio.Task[None] | None = None
        self._started_at: float | None = None
        self._timers = Timers()
        self._frozen_at: float | None = None
        self._said: Ending | None = None  # the newest result from its process
        self._kept: Ending | None = None  # the result that counts
        self._ends_for: str | None = None
        self._exit: Exit | None = None  # of its first process
        self._exit_code: int | None = None  # while its large result is stored
        self._told: Report  # once it is settled

    @property
    def epoch(self) -> int:
        return self.assignment.epoch

    @property
    def has_started(self) -> bool:
        return self._started_at is not None

    @property
    def is_begun(self) -> bool:
        """Whether it has asked for a process."""
        return self.state.phase is not Phase.WAITING or self.state.second

    def begin(self) -> None:
        told = self.assignment
        file = TemplateKey(told.code_hash, told.file, told.default_timezone, told.environment)
        template = self._tools.templates.ready(file)
        if template is not None and self._tools.going.is_set():
            self._fork(template)
        else:
            late = f"it was not started within {limits.START_WITHIN:g} s of its assignment"
            self._timers.after(limits.START_WITHIN, partial(self._hear, TryEvent.TOO_LATE, late))
            self._loading = self._loop.create_task(self._begin_cold(file))

    def end(self, reason: str) -> None:
        """Ends the process group: SIGTERM, after a grace SIGKILL. The exit is reported with ``reason``. A second call does
        no harm.
        """
        self._ends_for = self._ends_for or reason
        self._hear(TryEvent.END)

    def freeze(self, since: float) -> None:
        """Notes that its template has stopped it; the stopped time does not count."""
        self._frozen_at = since
        self._timers.pause(since)
        self._note("frozen: this worker has no answer from the control plane, which may have given the try to another one")

    def go_on(self) -> None:
        """Notes that its template lets it continue, or soon will."""
        if self._frozen_at is not None:
            stood_s, self._frozen_at = self._loop.time() - self._frozen_at, None
            self._timers.go_on()
            self._note(f"goes on after {stood_s:.1f} s; they count toward no timeout")

    def give_up(self, reason: str) -> None:
        """Ends the try at once; the try has not caused this."""
        self._ends_for = self._ends_for or reason
        self._hear(TryEvent.GIVE_UP, reason)

    def abandon(self) -> None:
        """Kills the try at once without a report, because it is no longer this worker's."""
        self._tools.reporter.abandon(self.epoch)
        self._hear(TryEvent.ABANDON)

    def give_back(self, reason: str) -> None:
        """Lets others begin the try, if it has not asked for a process yet."""
        self._hear(TryEvent.GIVE_BACK, reason)

    def warn(self, what: str) -> None:
        """Warns readers of its log, while it has a process."""
        if self.state.phase in (Phase.STARTING, Phase.RUNNING):
            self._note(what)

    # -- its process

    def started(self, pid: int) -> None:
        self._hear(TryEvent.STARTED)

    def frame(self, head: bytes, body: bytes) -> None:
        match read_head(head):
            case Result() as result:
                self._said = ending_of(result, body)
                self._hear(TryEvent.SAID if self._said.defer is None else TryEvent.DEFERRED)
            case CleaningUp():
                self._hear(TryEvent.CLEANS_UP)
            case Progressed():
                self._proxy_of_child().show_progress(body)
            case question:
                self._proxy_of_child().serve(question, body)

    def output(self, data: bytes) -> None:
        self._log.write(data)

    def exited(self, end: Exit) -> None:
        if self._child is not None and not end.alone:
            self.leftovers.add(self._child)
        self._exit = self._exit or end
        self._hear(TryEvent.LOST if end.is_lost else TryEvent.EXITED, describe_exit(end) if end.is_lost else None)

    # -- its deeds

    def _hear(self, event: TryEvent, reason: str | None = None) -> None:
        """``reason`` is why it cannot start, or is lost."""
        self.state, deeds = react(self.state, event)
        for deed in deeds:
            self._do(deed, reason)

    def _do(self, deed: Deed, reason: str | None) -> None:
        match deed:
            case Deed.TERMINATE:
                self._signal(signal.SIGTERM)
                self._timers.after(limits.TERM_GRACE, partial(self._hear, TryEvent.GRACE_OVER))
                self._timers.after(limits.CLEAN_UP_GRACE, partial(self._hear, TryEvent.CLEAN_UP_OVER))
            case Deed.KILL:
                self._signal(signal.SIGKILL)
            case Deed.STOP_LOADING:
                if self._loading is not None:
                    self._loading.cancel()
            case Deed.TELL_START:
                self._started_at = self._loop.time()
                self._tools.reporter.started(self.epoch, self.assignment.token)
            case Deed.LIMIT_CLEAN_UP:
                self._timers.after(limits.CLEAN_UP, partial(self._hear, TryEvent.CLEAN_UP_OVER))
            case Deed.LIMIT_RUN:
                self._limit_run()
            case Deed.NOTE_CLEAN_UP:
                self._note(f"stopping what it has started outside, for up to {limits.CLEAN_UP_GRACE:g} s")
            case Deed.KEEP:
                self._kept = self._said
            case Deed.CLEAN_UP:
                self._clean_up()
            case Deed.CANNOT_START:
                self._conclude(Ending(outcome="cannot_start", reason=reason))
            case Deed.GIVEN_BACK:
                self._conclude(Ending(outcome="cannot_start", reason=reason, given_back=True))
            case Deed.NEVER_STARTED:
                self._conclude(Ending(outcome="failed", reason=f"{self._ends_for}, before it was started"))
            case Deed.LOSE:
                self._conclude(Ending(outcome="lost", reason=reason))
            case Deed.JUDGE:
                self._conclude(self._judged())
            case Deed.JUDGE_LOST:
                self._conclude(replace(self._judged(), outcome="lost"))
            case Deed.REPORT:
                self._report(self._told)
            case Deed.REPORT_ENDED:
                self._report_stored_no_more("failed", self._ends_for)
            case Deed.REPORT_LOST:
                self._report_stored_no_more("lost", reason)
            case Deed.STOP_STORING:
                if self._settling is not None:
                    self._settling.cancel()
            case Deed.FORGET:
                self._finish()
            case _:
                assert_never(deed)

    def _signal(self, signum: int) -> None:
        assert self._child is not None
        self._child.send_signal(signum)

    def _limit_run(self) -> None:
        resumed, timeout = self.assignment.resumed, self.assignment.execution_timeout
        if resumed is not None and resumed.purpose == Purpose.CLEAN_UP:
            self._timers.after(limits.CLEAN_UP, lambda: self.end(f"on_kill took longer than {limits.CLEAN_UP:g} s"))
        elif timeout is not None:
            left = timeout if resumed is None else max(timeout - resumed.spent_s, 0.0)
            self._timers.after(left, lambda: self.end(f"execution_timeout of {timeout:g} s exceeded"))

    def _judged(self) -> Ending:
        assert self._exit is not None
        evidence = self._tools.memory.evidence() if self._exit.status == -signal.SIGKILL else None
        if over_limit := self._group.evidence() if self._group is not None else None:
            self._note(over_limit)
        return judge(self._kept, self._exit, ended_for=self._ends_for, out_of_memory=evidence, over_limit=over_limit)

    # -- inside

    def _proxy_of_child(self) -> TryProxy:
        if self._proxy is None:
            assert self._child is not None
            self._proxy = TryProxy(self._tools.api, self.assignment.token, self._child, self._masker, self._values, self._note)
        return self._proxy

    def _clean_up(self) -> None:
        """Cleans up in another process, as for a try that is ended while it is deferred."""
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
            self._hear(TryEvent.NOT_LOADED, str(error))
        else:
            self._fork(template)

    def _fork(self, template: OwnedTemplate) -> None:
        job = {name: msgspec.to_builtins(getattr(self.assignment, name)) for name in _JOB_FIELDS}
        if self.assignment.resumed is not None:
            self._masker.add(self.assignment.resumed.secrets)
        if self.state.owes:
            job["resumed"] |= {"purpose": Purpose.CLEAN_UP, "reason": self._ends_for}
        job["api_url"] = self._tools.api_url
        reached(KillPoint.TRY_FORKING)
        self._hear(TryEvent.FORKED)
        try:
            if not self._cleans_up:
                self._group = self._tools.limits.make(self.epoch, self.assignment.resources, self._note, self.end)
            admit = None if self._group is None or self._cleans_up else self._group.admit
            self._child = template.begin(job, self, decides=True, reuse=self._reuse(), admit=admit)
        except CannotLimit as error:
            self._hear(TryEvent.NOT_FORKED, str(error))
        except OSError as error:
            self._hear(TryEvent.NOT_FORKED, f"the worker's host could not start a process: {error}")
        else:
            if isinstance(known := self._child.remembers, Masker):
                self._masker.learn(known)  # secrets of an earlier try may still be in this process's memory
            self._child.remembers = self._masker
            reached(KillPoint.TRY_FORKED)

    def _reuse(self) -> Reuse | None:
        """Returns the terms of reuse. A clean-up always has its own process, and so does a try with limits."""
        if not self.assignment.reuse or self._cleans_up or self.assignment.resources is not None:
            return None
        return self._tools.reuse(self.assignment.dag_id)

    @property
    def _cleans_up(self) -> bool:
        """Whether its process only cleans up. Then it has no limits, because it must also run where these cannot be set."""
        resumed = self.assignment.resumed
        return self.state.owes or (resumed is not None and resumed.purpose == Purpose.CLEAN_UP)

    def _log_is_full(self, full: bool) -> None:
        if self._child is not None:
            (self._child.pause_output if full else self._child.resume_output)()

    def _note(self, what: str) -> None:
        """Writes a line into the log of the try."""
        self._log.write(f"\n-- {what} --\n".encode())

    def _conclude(self, ending: Ending) -> None:
        if self._group is not None:
            self._group.close(leaves=self._ends_ordinarily(ending))
        if self.leftovers:
            self._settle_by(partial(self._settle_remains, ending))
        else:
            self._settle(ending)

    def _settle_by(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._settling = self._loop.create_task(self._settled_by(work))

    async def _settled_by(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Runs ``work``. A defect of Evenflow ends the try, too: otherwise the scheduler would wait for a report for ever."""
        try:
            await work()
        except Exception as error:
            if self.state.phase is not Phase.OVER:
                self._settled(self._by_defect(error))

    async def _settle_remains(self, ending: Ending) -> None:
        """R-CS9: after the report of its exit its task may begin again, unless it has ended in the ordinary way."""
        if self._ends_ordinarily(ending):
            await self.leftovers.tell(waits=ending.outcome == "deferred")
        if not self._ends_ordinarily(ending):  # meanwhile it may have been ended or taken back
            await self.leftovers.end()
        self._settle(ending)

    def _ends_ordinarily(self, ending: Ending) -> bool:
        return ending.outcome in _LEAVES and self.state.wish is Wish.GOES_ON

    def _settle(self, ending: Ending) -> None:
        wanted = self.state.wish is not Wish.ABANDONED
        if ending.result is not None and self._values.takes_time(ending.result) and wanted:
            self._exit_code = ending.exit_code
            self._hear(TryEvent.STORES)
            self._settle_by(partial(self._store_result, ending, ending.result))
        elif ending.defer is not None and wanted:
            self._settle_by(partial(self._store_log, ending, ending.defer))
        else:
            self._settled(ending)

    async def _store_result(self, ending: Ending, result: bytes) -> None:
        """Reports the exit once its large result is checked for secrets, and is in object storage or cannot be stored there."""
        try:
            push = await self._values.prepared(RETURN_VALUE, result, self._masker)
        except XComError as error:
            self._settled(replace(ending, outcome="failed", reason=str(error), result=None))
        else:
            reached(KillPoint.RESULT_STORED)
            self._settled(replace(ending, result=push.value), push.stored, secret=push.secret)

    async def _store_log(self, ending: Ending, defer: Defer) -> None:
        """Reports a deferral once its log is stored. What its trigger and its resume log comes after it; once it has resumed, the
        API does not take its first part any more.
        """
        self._log.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limits.LOG_STORED):
                await self._log.shipped()
        secrets = self._masker.found_in(msgspec.json.encode([defer.trigger_kwargs, defer.kwargs]))
        self._settled(replace(ending, defer=replace(defer, secrets=secrets)))

    def _settled(self, ending: Ending, stored: StoredObject | None = None, *, secret: bool | None = None) -> None:
        """``secret`` says whether the result contains a secret, if that is known."""
        try:
            if secret is None:
                secret = ending.result is not None and self._masker.finds_in(ending.result)
            told = Report(token=self.assignment.token, ending=self._sayable(ending), stored=stored, secret=secret)
        except Exception as error:
            told = Report(token=self.assignment.token, ending=self._by_defect(error))
        self._told = told
        self._hear(TryEvent.SETTLED)

    def _by_defect(self, error: Exception) -> Ending:
        observe(seen.end_not_told(self.assignment.task_id, self.epoch, error))
        return Ending(outcome="failed", reason=f"its end could not be told, by a defect of Evenflow: {error!r}")

    def _report(self, report: Report) -> None:
        reached(KillPoint.TRY_ENDED)
        self._tools.reporter.exited(self.epoch, report)
        self._finish()

    def _report_stored_no_more(self, outcome: OutcomeName, reason: str | None) -> None:
        ending = self._sayable(Ending(outcome=outcome, reason=reason, exit_code=self._exit_code))
        self._report(Report(token=self.assignment.token, ending=ending))

    def _sayable(self, ending: Ending) -> Ending:
        """Returns the ending with what the process does not know, and with secrets masked."""
        return replace(
            ending,
            ran_s=None if self._started_at is None else self._loop.time() - self._started_at,
            reason=None if ending.reason is None else self._masker.mask_text(_encodable(ending.reason)),
            error_types=[_encodable(name) for name in ending.error_types],
            produced=[self._shown(change) for change in ending.produced],
        )

    def _shown(self, change: AssetChange) -> AssetChange:
        return replace(change, extra=self._masker.mask_value(change.extra), uri=self._masker.mask_text(change.uri))

    def _finish(self) -> None:
        self._timers.end()
        if self._proxy is not None:
            self._proxy.close()
        self._log.close()
        self._on_end(self)


def _encodable(text: str) -> str:
    """Escapes characters that no message can carry: an error may quote file names that are not Unicode."""
    return text.encode(errors="backslashreplace").decode()
