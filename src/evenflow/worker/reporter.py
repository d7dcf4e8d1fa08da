"""Reports on their way to the control plane: at once when nothing is in flight, else with the next batch.

An exit stays here until it is acknowledged, however long the API is away. One at which the API fails again and again while it takes
others does not hold these up: it is sent alone, and after some attempts replaced by an exit that says so. A start is reported only
if the try still runs after a moment: an exit implies it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

import structlog

from evenflow.errors import ApiRefused, ApiUnavailable
from evenflow.killpoints import KillPoint, reached
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
    failures: int = 0  # of the API at it alone, while others were taken
    not_before: float = 0.0  # by the loop's clock
    taken_before: int | None = None  # reports that the API had taken when it last failed at this one


class Reporter:
    def __init__(self, api: ReportApi) -> None:
        self._api = api
        self._loop = asyncio.get_running_loop()
        self._starts: dict[int, _Entry] = {}
        self._exits: dict[int, _Entry] = {}
        self._wake = asyncio.Event()
        self._patience = Patience()
        self._taken = 0  # reports that the API has taken
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
                self._keep_starts(batch)
                await self._patience.wait()
            else:
                self._patience.renew()
            if self._exits:
                pause = min(entry.not_before for entry in self._exits.values()) - self._loop.time()
                self._loop.call_later(max(0.0, pause), self._wake.set)
            else:
                self._delivered.set()

    def _keep_starts(self, batch: list[_Entry]) -> None:
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

    def _take(self) -> list[_Entry]:
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

    async def _send(self, batch: list[_Entry]) -> bool:
        """Whether the batch is done with: stored, or refused for good."""
        now = self._loop.time()
        for entry in batch:
            entry.report.age_s = now - entry.at
            reached(KillPoint.EXIT_REPORTING if entry.report.kind == "exit" else KillPoint.START_REPORTING)
        try:
            answer = await self._api.report(Reports(reports=[entry.report for entry in batch]))
        except ApiUnavailable as error:
            log.warning("reports wait for the API", exits=len(self._exits), reason=str(error))
            return False
        except ApiRefused as error:
            return await self._split(batch, error)
        reached(KillPoint.EXIT_ACKNOWLEDGED)
        self._taken += len(batch)
        refused = dict(zip(answer.refused_at, answer.refused, strict=True))
        for position, entry in enumerate(batch):
            if position in refused:
                self._refused(entry, refused[position])
            else:
                self._forget(entry)
        return True

    async def _split(self, batch: list[_Entry], error: ApiRefused) -> bool:
        """A whole batch was refused: one report must not keep others from arriving."""
        if error.status > 500 or error.status in (401, 403):  # not about these reports
            log.warning("reports refused", exits=len(self._exits), reason=str(error))
            return False
        if len(batch) > 1:
            return all([await self._send([entry]) for entry in batch])
        if error.status == 500:
            return self._failed(batch[0], str(error))
        self._refused(batch[0], str(error))
        return True

    def _failed(self, entry: _Entry, reason: str) -> bool:
        """The API failed at this report alone. Whether that seems to be the report's fault: meanwhile the API took others."""
        log.warning("the API failed at a report", epoch=entry.epoch, kind=entry.report.kind, reason=reason)
        before, entry.taken_before = entry.taken_before, self._taken
        if before is None or before == self._taken:
            return entry.report.kind == "started"  # which is sent once
        entry.failures += 1
        entry.not_before = self._loop.time() + limits.REPORT_PAUSE
        if entry.failures == limits.REPORT_FAILURES:
            self._replace(entry, f"the API failed {entry.failures} times at what it reported: {reason}")
        return True

    def _refused(self, entry: _Entry, reason: str) -> None:
        report = entry.report
        if report.result is None and not report.produced and report.defer is None:
            log.error("report refused", epoch=entry.epoch, kind=report.kind, reason=reason)
            self._forget(entry)
        else:
            self._replace(entry, reason)

    def _replace(self, entry: _Entry, reason: str) -> None:
        """An exit that says nothing but why it says no more."""
        report = entry.report
        if self._exits.get(entry.epoch) is entry:
            entry.report = Report(
                token=report.token, kind="exit", outcome="failed", reason=reason, ran_s=report.ran_s, exit_code=report.exit_code
            )

    def _forget(self, entry: _Entry) -> None:
        if self._exits.get(entry.epoch) is entry:
            del self._exits[entry.epoch]
