"""Reports on their way to the control plane: at once when nothing is in flight, else with the next batch.

An exit stays here until it is acknowledged, however long the API is away; one that the API cannot take is replaced by one that says
so. A start is reported only if the try still runs after a moment: an exit implies it.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

import structlog

from evenflow.killpoints import KillPoint, reached
from evenflow.process.courier import Courier, Entry
from evenflow.process.patience import Patience
from evenflow.wire.messages import Report, Reports, ReportsAnswer
from evenflow.worker import limits

log = structlog.get_logger(__name__)


class ReportApi(Protocol):
    async def report(self, message: Reports) -> ReportsAnswer: ...


class Reporter:
    def __init__(self, api: ReportApi) -> None:
        self._api = api
        self._courier = Courier(self._post, acknowledged=self._forget, refused=self._refused, spoiled=self._replace)
        self._loop = asyncio.get_running_loop()
        self._starts: dict[int, Entry[Report]] = {}
        self._exits: dict[int, Entry[Report]] = {}
        self._wake = asyncio.Event()
        self._patience = Patience()
        self._start_timer: asyncio.TimerHandle | None = None
        self._delivered = asyncio.Event()
        self._delivered.set()

    @property
    def unacknowledged(self) -> list[int]:
        """Epochs whose exit the control plane may not know."""
        return list(self._exits)

    def started(self, epoch: int, token: str) -> None:
        self._starts[epoch] = Entry(epoch, Report(token=token, kind="started"), self._loop.time(), once=True)
        if self._start_timer is None:
            self._start_timer = self._loop.call_later(limits.STARTED_DELAY, self._report_starts)

    def exited(self, epoch: int, report: Report) -> None:
        self._starts.pop(epoch, None)
        self._exits[epoch] = Entry(epoch, report, self._loop.time())
        self._delivered.clear()
        self._wake.set()

    def abandon(self, epoch: int) -> None:
        """The try was taken away: its start is no news any more."""
        self._starts.pop(epoch, None)

    async def delivered(self) -> None:
        """Returns when every exit is acknowledged."""
        await self._delivered.wait()

    async def run(self) -> None:
        """Send for ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            batch = self._take()
            if batch and not await self._courier.send(batch):
                self._keep_starts(batch)
                await self._patience.wait()
            else:
                self._patience.renew()
            if self._exits:
                pause = min(entry.not_before for entry in self._exits.values()) - self._loop.time()
                self._loop.call_later(max(0.0, pause), self._wake.set)
            else:
                self._delivered.set()

    def _keep_starts(self, batch: list[Entry[Report]]) -> None:
        """Of a batch that did not arrive, but for those of tries that have ended meanwhile."""
        for entry in batch:
            if entry.report.kind == "started" and entry.epoch not in self._exits:
                self._starts.setdefault(entry.epoch, entry)
        if self._start_timer is None:
            self._start_timer = self._loop.call_later(limits.STARTED_DELAY, self._report_starts)

    def _report_starts(self) -> None:
        self._start_timer = None
        if self._starts:
            self._wake.set()

    def _take(self) -> list[Entry[Report]]:
        """The next batch. Exits stay listed until acknowledged, starts come back when they did not arrive."""
        starts = list(self._starts.values())[: limits.REPORTS]
        for entry in starts:
            del self._starts[entry.epoch]
        batch, size, now = starts, 0, self._loop.time()
        for entry in self._exits.values():
            if entry.not_before > now:
                continue
            size += len(entry.report.result or b"")
            if len(batch) >= limits.REPORTS or (batch and size > limits.REPORTS_SIZE):
                break
            batch.append(entry)
        return batch

    async def _post(self, reports: list[Report]) -> ReportsAnswer:
        for report in reports:
            reached(KillPoint.EXIT_REPORTING if report.kind == "exit" else KillPoint.START_REPORTING)
        answer = await self._api.report(Reports(reports=reports))
        reached(KillPoint.EXIT_ACKNOWLEDGED)
        return answer

    def _refused(self, entry: Entry[Report], reason: str) -> None:
        report = entry.report
        if report.result is None and not report.produced and report.defer is None:
            log.error("report refused", epoch=entry.epoch, kind=report.kind, reason=reason)
            self._forget(entry)
        else:
            self._replace(entry, reason)

    def _replace(self, entry: Entry[Report], reason: str) -> None:
        """An exit that says nothing but why it says no more."""
        report = entry.report
        if self._exits.get(entry.epoch) is entry:
            entry.report = Report(
                token=report.token, kind="exit", outcome="failed", reason=reason, ran_s=report.ran_s, exit_code=report.exit_code
            )

    def _forget(self, entry: Entry[Report]) -> None:
        if self._exits.get(entry.epoch) is entry:
            del self._exits[entry.epoch]
