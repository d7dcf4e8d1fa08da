"""Reports of tries. An exit is kept until it is acknowledged, however long the API is away.

A start is reported only if the try still runs after a moment: an exit implies it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from evenflow.killpoints import KillPoint, reached
from evenflow.process import limits as process_limits
from evenflow.process.courier import Courier, Entry
from evenflow.wire.messages import Report, Reports, ReportsAnswer
from evenflow.worker import limits


class ReportApi(Protocol):
    async def report(self, message: Reports) -> ReportsAnswer: ...


class Reporter(Courier[Report]):
    def __init__(self, api: ReportApi, stored: Callable[[int], None] = lambda epoch: None) -> None:
        """``stored`` hears of each exit that the control plane has."""
        super().__init__()
        self._api, self._stored = api, stored
        self._starts: dict[int, Entry[Report]] = {}
        self._start_timer: asyncio.TimerHandle | None = None

    def started(self, epoch: int, token: str) -> None:
        self._starts[epoch] = Entry(epoch, Report(token=token, kind="started"), self._loop.time(), once=True)
        self._report_starts_soon()

    def exited(self, epoch: int, report: Report) -> None:
        self._starts.pop(epoch, None)
        self._keep(Entry(epoch, report, self._loop.time()))

    def abandon(self, epoch: int) -> None:
        """The try was taken away: its start is no news any more."""
        self._starts.pop(epoch, None)

    def _report_starts_soon(self) -> None:
        if self._start_timer is None:
            self._start_timer = self._loop.call_later(limits.STARTED_DELAY, self._report_starts)

    def _report_starts(self) -> None:
        self._start_timer = None
        if self._starts:
            self._wake.set()

    def _ahead(self) -> list[Entry[Report]]:
        """Starts, which come back when they did not arrive."""
        starts = list(self._starts.values())[: process_limits.REPORTS]
        for entry in starts:
            del self._starts[entry.epoch]
        return starts

    def _not_sent(self, batch: list[Entry[Report]]) -> None:
        """Starts are kept, but for those of tries that have ended meanwhile."""
        ended = set(self.unacknowledged)
        for entry in batch:
            if entry.report.kind == "started" and entry.epoch not in ended:
                self._starts.setdefault(entry.epoch, entry)
        self._report_starts_soon()

    def _acknowledged(self, entry: Entry[Report]) -> None:
        super()._acknowledged(entry)
        if entry.report.kind == "exit":
            self._stored(entry.epoch)

    async def _post(self, reports: list[Report]) -> ReportsAnswer:
        for report in reports:
            reached(KillPoint.EXIT_REPORTING if report.kind == "exit" else KillPoint.START_REPORTING)
        answer = await self._api.report(Reports(reports=reports))
        reached(KillPoint.EXIT_ACKNOWLEDGED)
        return answer

    def _size(self, report: Report) -> int:
        return len(report.result or b"")

    def _says_more(self, report: Report) -> bool:
        return report.result is not None or bool(report.produced) or report.defer is not None

    def _instead(self, report: Report, reason: str) -> Report:
        return Report(
            token=report.token, kind="exit", outcome="failed", reason=reason, ran_s=report.ran_s, exit_code=report.exit_code
        )
