"""Reports of triggers: kept until they are acknowledged, however long the API is away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from evenflow.killpoints import KillPoint, reached
from evenflow.membership.report_queue import Entry, ReportQueue
from evenflow.wire.triggers import TriggerReport, TriggerReports, TriggerReportsAnswer


class TriggerReportApi(Protocol):
    async def report_triggers(self, message: TriggerReports) -> TriggerReportsAnswer: ...


class TriggerReporter(ReportQueue[TriggerReport]):
    """``acknowledged`` is called with the seconds that each event took."""

    def __init__(self, api: TriggerReportApi, acknowledged: Callable[[float], None]) -> None:
        super().__init__()
        self._api, self._told = api, acknowledged

    def add(self, epoch: int, report: TriggerReport, at: float | None = None) -> None:
        """``at`` is when the outcome happened, by the loop's clock; by default now."""
        self._keep(Entry(epoch, report, self._loop.time() if at is None else at))

    async def _post(self, reports: list[TriggerReport]) -> TriggerReportsAnswer:
        answer = await self._api.report_triggers(TriggerReports(reports=reports))
        reached(KillPoint.EVENTS_ACKNOWLEDGED)
        return answer

    def _size(self, report: TriggerReport) -> int:
        return len(report.event or b"")

    def _says_more(self, report: TriggerReport) -> bool:
        """An event that cannot be stored counts as a failure of its trigger; any other refused report is of a claim that is
        over.
        """
        return report.event is not None

    def _instead(self, report: TriggerReport, reason: str) -> TriggerReport:
        return TriggerReport(token=report.token, error=reason)

    def _acknowledged(self, entry: Entry[TriggerReport]) -> None:
        super()._acknowledged(entry)
        if entry.report.event is not None:
            self._told(self._loop.time() - entry.at)
