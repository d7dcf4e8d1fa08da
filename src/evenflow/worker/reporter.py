"""Reports of tries. An exit is kept until it is acknowledged, however long the API is away; a start while its try is in hand.

A start is reported only if the try still runs after a moment: an exit implies it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from evenflow.core.ending import Ending, OutcomeName
from evenflow.killpoints import KillPoint, reached
from evenflow.membership import limits as shared_limits
from evenflow.membership.report_queue import Entry, ReportQueue
from evenflow.telemetry.observing import observe
from evenflow.wire.messages import Report, Reports, ReportsAnswer
from evenflow.worker import limits
from evenflow.worker import observations as seen


class ReportApi(Protocol):
    async def report(self, message: Reports) -> ReportsAnswer: ...


class Reporter(ReportQueue[Report]):
    def __init__(self, api: ReportApi, stored: Callable[[int], None] = lambda epoch: None) -> None:
        """``stored`` is called for each exit that the control plane has."""
        super().__init__()
        self._api, self._stored = api, stored
        self.outcome: OutcomeName | None = None  # of the try that ended last
        self._starts: dict[int, Entry[Report]] = {}  # unacknowledged ones of tries in hand
        self._start_timer: asyncio.TimerHandle | None = None

    def started(self, epoch: int, token: str) -> None:
        self._starts[epoch] = Entry(epoch, Report(token=token), self._loop.time())
        self._report_starts_soon()

    def exited(self, epoch: int, report: Report) -> None:
        self.outcome = None if report.ending is None else report.ending.outcome
        self._starts.pop(epoch, None)
        self._keep(Entry(epoch, report, self._loop.time()))

    def abandon(self, epoch: int) -> None:
        """Forgets the start of a try that was taken away."""
        self._starts.pop(epoch, None)

    @property
    def ran(self) -> list[int]:
        """Epochs of tries that were not given back, and whose exit the control plane may not know."""
        return [kept.epoch for kept in self._kept if kept.report.ending is None or not kept.report.ending.given_back]

    def _report_starts_soon(self) -> None:
        if self._start_timer is None:
            self._start_timer = self._loop.call_later(limits.STARTED_DELAY, self._report_starts)

    def _report_starts(self) -> None:
        self._start_timer = None
        if self._starts:
            self._wake.set()

    def _ahead(self) -> list[Entry[Report]]:
        """Returns the starts that are due."""
        now = self._loop.time()
        return [entry for entry in self._starts.values() if entry.not_before <= now][: shared_limits.REPORTS]

    def _not_sent(self, batch: list[Entry[Report]]) -> None:
        """Has the starts sent again soon."""
        self._report_starts_soon()

    def _acknowledged(self, entry: Entry[Report]) -> None:
        super()._acknowledged(entry)
        if entry.report.ending is not None:
            self._stored(entry.epoch)
        elif self._is_news(entry):
            del self._starts[entry.epoch]

    def _failed(self, entry: Entry[Report], reason: str) -> bool:
        if entry.report.ending is not None:
            return super()._failed(entry, reason)
        self._put_off(entry, reason)
        return True

    def _refused(self, entry: Entry[Report], reason: str) -> None:
        if entry.report.ending is not None:
            super()._refused(entry, reason)
        else:
            self._put_off(entry, reason)

    def _put_off(self, entry: Entry[Report], reason: str) -> None:
        """Sends a start again that was not taken, ever more rarely. It waits apart, so that it delays nothing."""
        if self._is_news(entry):
            pause = min(shared_limits.REPORT_PAUSE * 2**entry.failures, limits.START_PAUSE)
            observe(seen.start_put_off(entry.epoch, pause, reason))
            entry.failures += 1
            entry.not_before = self._loop.time() + pause
            self._loop.call_later(pause, self._wake.set)

    def _is_news(self, entry: Entry[Report]) -> bool:
        """Returns whether its try is still in hand."""
        return self._starts.get(entry.epoch) is entry

    async def _post(self, reports: list[Report]) -> ReportsAnswer:
        for report in reports:
            reached(KillPoint.START_REPORTING if report.ending is None else KillPoint.EXIT_REPORTING)
        answer = await self._api.report(Reports(reports=reports))
        reached(KillPoint.EXIT_ACKNOWLEDGED)
        return answer

    def _size(self, report: Report) -> int:
        return 0 if report.ending is None else len(report.ending.result or b"")

    def _says_more(self, report: Report) -> bool:
        ending = report.ending
        return ending is not None and (ending.result is not None or bool(ending.produced) or ending.defer is not None)

    def _instead(self, report: Report, reason: str) -> Report:
        was = report.ending
        assert was is not None
        return Report(token=report.token, ending=Ending(outcome="failed", reason=reason, ran_s=was.ran_s, exit_code=was.exit_code))
