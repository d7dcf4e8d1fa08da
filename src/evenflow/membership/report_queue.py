"""Sends reports of one kind to the control plane in batches. A bad report must not keep the others from arriving.

When a whole batch is refused, its reports are sent one by one. A report at which the API fails repeatedly while it accepts others
waits apart, and after some attempts it is replaced by a report that says so.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from evenflow.errors import ApiRefused, ApiUnavailable
from evenflow.membership import limits
from evenflow.membership import observations as seen
from evenflow.membership.backoff import Backoff
from evenflow.telemetry.observing import observe


class Aged(Protocol):
    age_s: float  # since the reported event


R = TypeVar("R", bound=Aged)


class Stored(Protocol):
    """The API's answer: which reports of a batch it refused, and why."""

    refused: list[str]
    refused_at: list[int]


@dataclass(slots=True, eq=False)
class Entry(Generic[R]):
    epoch: int
    report: R
    at: float  # the time of the event, by the loop's clock
    failures: int = 0  # of the API at this report alone, while it took others
    not_before: float = 0.0  # by the loop's clock
    taken_before: int | None = None  # reports that the API had taken at its last failure at this one


class ReportQueue(ABC, Generic[R]):
    """Sends kept reports until they are stored, or refused for good: at once if nothing is in flight, else in the next batch."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._kept: dict[Entry[R], None] = {}  # the oldest first
        self._wake = asyncio.Event()
        self._backoff = Backoff()
        self._taken = 0  # reports that the API has taken
        self._delivered = asyncio.Event()
        self._delivered.set()

    @abstractmethod
    async def _post(self, reports: list[R]) -> Stored: ...

    @abstractmethod
    def _size(self, report: R) -> int:
        """Returns the report's bytes in a batch."""

    @abstractmethod
    def _says_more(self, report: R) -> bool:
        """Returns whether the report says more than :meth:`_instead` would make of it."""

    @abstractmethod
    def _instead(self, report: R, reason: str) -> R:
        """Returns a replacement of the report that says only why the rest is missing."""

    def _ahead(self) -> list[Entry[R]]:
        """Returns reports that go before the kept ones, and are not kept themselves."""
        return []

    def _not_sent(self, batch: list[Entry[R]]) -> None:
        """Called with a batch that was not sent, because the API is away."""

    def _acknowledged(self, entry: Entry[R]) -> None:
        self._kept.pop(entry, None)

    @property
    def unacknowledged(self) -> list[int]:
        """Epochs of the reports that the control plane may not have."""
        return [entry.epoch for entry in self._kept]

    async def delivered(self) -> None:
        """Returns when no report is kept any more."""
        await self._delivered.wait()

    async def run(self) -> None:
        """Sends until it is cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            batch = self._take()
            if batch and not await self._send(batch):
                self._not_sent(batch)
                await self._backoff.wait()
            else:
                self._backoff.renew()
            if self._kept:
                pause = min(entry.not_before for entry in self._kept) - self._loop.time()
                self._loop.call_later(max(0.0, pause), self._wake.set)
            else:
                self._delivered.set()

    def _keep(self, entry: Entry[R]) -> None:
        self._kept[entry] = None
        self._delivered.clear()
        self._wake.set()

    def _take(self) -> list[Entry[R]]:
        """Returns the next batch."""
        batch, size, now = self._ahead(), 0, self._loop.time()
        for entry in self._kept:
            if entry.not_before > now:
                continue
            size += self._size(entry.report)
            if len(batch) >= limits.REPORTS or (batch and size > limits.REPORTS_SIZE):
                break
            batch.append(entry)
        return batch

    async def _send(self, batch: list[Entry[R]]) -> bool:
        """Returns whether the batch is done for now: stored, refused, or set apart. False means that the API is away."""
        now = self._loop.time()
        for entry in batch:
            entry.report.age_s = now - entry.at
        try:
            answer = await self._post([entry.report for entry in batch])
        except ApiUnavailable as error:
            observe(seen.reports_wait(len(self._kept), str(error)))
            return False
        except ApiRefused as error:
            return await self._split(batch, error)
        self._taken += len(batch)
        refused = dict(zip(answer.refused_at, answer.refused, strict=True))
        for position, entry in enumerate(batch):
            if position in refused:
                self._refused(entry, refused[position])
            else:
                self._acknowledged(entry)
        return True

    async def _split(self, batch: list[Entry[R]], error: ApiRefused) -> bool:
        if error.status > 500 or error.status in (401, 403):  # not about these reports
            observe(seen.reports_refused(len(self._kept), str(error)))
            return False
        if len(batch) > 1:
            return all([await self._send([entry]) for entry in batch])
        if error.status == 500:
            return self._failed(batch[0], str(error))
        self._refused(batch[0], str(error))
        return True

    def _failed(self, entry: Entry[R], reason: str) -> bool:
        """Notes that the API failed at this report alone. Returns whether the report seems to be the cause: meanwhile the API took
        others.
        """
        observe(seen.report_failed(entry.epoch, reason))
        before, entry.taken_before = entry.taken_before, self._taken
        if before is None or before == self._taken:
            return False
        entry.failures += 1
        entry.not_before = self._loop.time() + limits.REPORT_PAUSE
        if entry.failures == limits.REPORT_FAILURES:
            self._replace(entry, f"the API failed {entry.failures} times at what it reported: {reason}")
        return True

    def _refused(self, entry: Entry[R], reason: str) -> None:
        if self._says_more(entry.report):
            self._replace(entry, reason)
        else:
            observe(seen.report_refused(entry.epoch, reason))
            self._kept.pop(entry, None)

    def _replace(self, entry: Entry[R], reason: str) -> None:
        if entry in self._kept:
            observe(seen.report_replaced(entry.epoch, reason))
            entry.report = self._instead(entry.report, reason)
