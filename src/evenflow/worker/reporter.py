"""Reports on their way to the control plane: at once when nothing is in flight, else with the next batch.

An exit stays here until it is acknowledged, however long the API is away. A start is reported only if the try still runs after a
moment: an exit implies it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

import structlog

from evenflow.errors import ApiRefused, ApiUnavailable
from evenflow.process.patience import Patience
from evenflow.wire.messages import Report, Reports, ReportsAnswer
from evenflow.worker import limits

log = structlog.get_logger(__name__)


class ReportApi(Protocol):
    async def report(self, message: Reports) -> ReportsAnswer: ...


@dataclass(slots=True)
class _Entry:
    epoch: int
    report: Report
    at: float  # when it happened, by the loop's clock


class Reporter:
    def __init__(self, api: ReportApi) -> None:
        self._api = api
        self._loop = asyncio.get_running_loop()
        self._starts: dict[int, _Entry] = {}
        self._exits: dict[int, _Entry] = {}
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
        self._starts[epoch] = _Entry(epoch, Report(token=token, kind="started"), self._loop.time())
        if self._start_timer is None:
            self._start_timer = self._loop.call_later(limits.STARTED_DELAY, self._report_starts)

    def exited(self, epoch: int, report: Report) -> None:
        self._starts.pop(epoch, None)
        self._exits[epoch] = _Entry(epoch, report, self._loop.time())
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
            if batch and not await self._send(batch):
                await self._patience.wait()
            else:
                self._patience.renew()
            if self._exits:
                self._wake.set()
            else:
                self._delivered.set()

    def _report_starts(self) -> None:
        self._start_timer = None
        if self._starts:
            self._wake.set()

    def _take(self) -> list[_Entry]:
        """The next batch. Exits stay listed until acknowledged, starts are sent once: a later beat or the exit says the same."""
        starts = list(self._starts.values())[: limits.REPORTS]
        for entry in starts:
            del self._starts[entry.epoch]
        batch, size = starts, 0
        for entry in self._exits.values():
            size += len(entry.report.result or b"")
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
            answer = await self._api.report(Reports(reports=[entry.report for entry in batch]))
        except ApiUnavailable as error:
            log.warning("reports wait for the API", exits=len(self._exits), reason=str(error))
            return False
        except ApiRefused as error:
            return await self._split(batch, error)
        refused = dict(zip(answer.refused_at, answer.refused, strict=True))
        for position, entry in enumerate(batch):
            if position in refused:
                self._refused(entry, refused[position])
            else:
                self._forget(entry)
        return True

    async def _split(self, batch: list[_Entry], error: ApiRefused) -> bool:
        """A whole batch was refused: one report must not keep others from arriving."""
        if error.status >= 500 or error.status in (401, 403):  # not about these reports
            log.warning("reports refused", exits=len(self._exits), reason=str(error))
            return False
        if len(batch) == 1:
            self._refused(batch[0], str(error))
            return True
        return all([await self._send([entry]) for entry in batch])

    def _refused(self, entry: _Entry, reason: str) -> None:
        report = entry.report
        if report.result is None and not report.produced:
            log.error("report refused", epoch=entry.epoch, kind=report.kind, reason=reason)
            self._forget(entry)
        elif self._exits.get(entry.epoch) is entry:
            entry.report = Report(
                token=report.token, kind="exit", outcome="failed", reason=reason, ran_s=report.ran_s, exit_code=report.exit_code
            )

    def _forget(self, entry: _Entry) -> None:
        if self._exits.get(entry.epoch) is entry:
            del self._exits[entry.epoch]
