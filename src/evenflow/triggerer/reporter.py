"""Reports on their way to the control plane: at once when nothing is in flight, else with the next batch.

What became of a trigger stays here until it is acknowledged, however long the API is away; an event that the API cannot take is
replaced by a failure that says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import structlog

from evenflow.killpoints import KillPoint, reached
from evenflow.process.courier import Courier, Entry
from evenflow.process.patience import Patience
from evenflow.triggerer import limits
from evenflow.wire.triggers import TriggerReport, TriggerReports, TriggerReportsAnswer

log = structlog.get_logger(__name__)


class TriggerReportApi(Protocol):
    async def report_triggers(self, message: TriggerReports) -> TriggerReportsAnswer: ...


class Reporter:
    """``acknowledged`` is told how long each event took, in seconds."""

    def __init__(self, api: TriggerReportApi, acknowledged: Callable[[float], None]) -> None:
        self._api, self._told = api, acknowledged
        self._courier = Courier(self._post, acknowledged=self._acknowledged, refused=self._refused, spoiled=self._replace)
        self._loop = asyncio.get_running_loop()
        self._entries: dict[Entry[TriggerReport], None] = {}  # the oldest first
        self._wake = asyncio.Event()
        self._patience = Patience()
        self._delivered = asyncio.Event()
        self._delivered.set()

    @property
    def unacknowledged(self) -> list[int]:
        """Epochs of which the control plane may not know what became of their trigger."""
        return [entry.epoch for entry in self._entries]

    def add(self, epoch: int, report: TriggerReport, at: float | None = None) -> None:
        """``at``: when it happened, by the loop's clock; else now."""
        self._entries[Entry(epoch, report, self._loop.time() if at is None else at)] = None
        self._delivered.clear()
        self._wake.set()

    async def delivered(self) -> None:
        """Returns when everything is acknowledged."""
        await self._delivered.wait()

    async def run(self) -> None:
        """Send for ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while batch := self._take():
                if await self._courier.send(batch):
                    self._patience.renew()
                else:
                    await self._patience.wait()
            if self._entries:
                pause = min(entry.not_before for entry in self._entries) - self._loop.time()
                self._loop.call_later(max(0.0, pause), self._wake.set)
            else:
                self._delivered.set()

    def _take(self) -> list[Entry[TriggerReport]]:
        batch: list[Entry[TriggerReport]] = []
        size, now = 0, self._loop.time()
        for entry in self._entries:
            if entry.not_before > now:
                continue
            size += len(entry.report.event or b"")
            if len(batch) >= limits.REPORTS or (batch and size > limits.REPORTS_SIZE):
                break
            batch.append(entry)
        return batch

    async def _post(self, reports: list[TriggerReport]) -> TriggerReportsAnswer:
        answer = await self._api.report_triggers(TriggerReports(reports=reports))
        reached(KillPoint.EVENTS_ACKNOWLEDGED)
        return answer

    def _acknowledged(self, entry: Entry[TriggerReport]) -> None:
        del self._entries[entry]
        if entry.report.event is not None:
            self._told(self._loop.time() - entry.at)

    def _refused(self, entry: Entry[TriggerReport], reason: str) -> None:
        """An event that cannot be stored is a failure of its trigger; what else is refused is of a claim that is over."""
        if entry.report.event is None:
            log.error("report refused", epoch=entry.epoch, reason=reason)
            del self._entries[entry]
        else:
            self._replace(entry, reason)

    def _replace(self, entry: Entry[TriggerReport], reason: str) -> None:
        """A failure that says nothing but why it says no more."""
        log.error("report replaced", epoch=entry.epoch, reason=reason)
        entry.report = TriggerReport(token=entry.report.token, error=reason)
