"""Reports on their way to the control plane: at once when nothing is in flight, else with the next batch.

What became of a trigger stays here until it is acknowledged, however long the API is away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import msgspec
import structlog

from evenflow.errors import ApiRefused, ApiUnavailable
from evenflow.killpoints import KillPoint, reached
from evenflow.process.patience import Patience
from evenflow.triggerer import limits
from evenflow.wire.triggers import TriggerReport, TriggerReports, TriggerReportsAnswer

log = structlog.get_logger(__name__)


class TriggerReportApi(Protocol):
    async def report_triggers(self, message: TriggerReports) -> TriggerReportsAnswer: ...


@dataclass(slots=True, eq=False)
class _Entry:
    epoch: int
    report: TriggerReport
    at: float  # when it happened, by the loop's clock


class Reporter:
    """``acknowledged`` is told how long each event took, in seconds."""

    def __init__(self, api: TriggerReportApi, acknowledged: Callable[[float], None]) -> None:
        self._api, self._acknowledged = api, acknowledged
        self._loop = asyncio.get_running_loop()
        self._entries: dict[_Entry, None] = {}  # the oldest first
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
        self._entries[_Entry(epoch, report, self._loop.time() if at is None else at)] = None
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
                if await self._send(batch):
                    self._patience.renew()
                else:
                    await self._patience.wait()
            self._delivered.set()

    def _take(self) -> list[_Entry]:
        batch: list[_Entry] = []
        size = 0
        for entry in self._entries:
            size += len(entry.report.event or b"")
            if len(batch) >= limits.REPORTS or (batch and size > limits.REPORTS_SIZE):
                break
            batch.append(entry)
        return batch

    async def _send(self, batch: list[_Entry]) -> bool:
        """Whether the batch is done with: stored, or refused for good."""
        now = self._loop.time()
        for entry in batch:
            entry.report.age_s = now - entry.at
        try:
            answer = await self._api.report_triggers(TriggerReports(reports=[entry.report for entry in batch]))
        except ApiUnavailable as error:
            log.warning("reports wait for the API", reports=len(self._entries), reason=str(error))
            return False
        except ApiRefused as error:
            return await self._split(batch, error)
        reached(KillPoint.EVENTS_ACKNOWLEDGED)
        refused = dict(zip(answer.refused_at, answer.refused, strict=True))
        now = self._loop.time()
        for position, entry in enumerate(batch):
            if position in refused:
                self._refused(entry, refused[position])
            else:
                del self._entries[entry]
                if entry.report.event is not None:
                    self._acknowledged(now - entry.at)
        return True

    async def _split(self, batch: list[_Entry], error: ApiRefused) -> bool:
        """A whole batch was refused: one report must not keep others from arriving."""
        if error.status >= 500 or error.status in (401, 403):  # not about these reports
            log.warning("reports refused", reports=len(self._entries), reason=str(error))
            return False
        if len(batch) > 1:
            return all([await self._send([entry]) for entry in batch])
        self._refused(batch[0], str(error))
        return True

    def _refused(self, entry: _Entry, reason: str) -> None:
        """An event that cannot be stored is a failure of its trigger; what else is refused is of a claim that is over."""
        del self._entries[entry]
        log.error("report refused", epoch=entry.epoch, reason=reason)
        if entry.report.event is not None:
            self.add(entry.epoch, msgspec.structs.replace(entry.report, event=None, error=reason), entry.at)
