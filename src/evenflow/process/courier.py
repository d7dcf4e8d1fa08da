"""Reports of one kind, brought to the control plane in batches. One of them must not keep the others from arriving.

What makes a whole batch refused is found by sending its reports one by one. A report at which the API fails again and again while
it takes others waits apart, and after some attempts its owner makes another one of it, which says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import structlog

from evenflow.errors import ApiRefused, ApiUnavailable
from evenflow.process import limits

log = structlog.get_logger(__name__)


class Aged(Protocol):
    age_s: float  # since it happened


R = TypeVar("R", bound=Aged)


class Stored(Protocol):
    """What the API answers: which of a batch it refused, and why."""

    refused: list[str]
    refused_at: list[int]


@dataclass(slots=True, eq=False)
class Entry(Generic[R]):
    epoch: int
    report: R
    at: float  # when it happened, by the loop's clock
    once: bool = False  # at the first failure of the API it is let go
    failures: int = 0  # of the API at it alone, while others were taken
    not_before: float = 0.0  # by the loop's clock
    taken_before: int | None = None  # reports that the API had taken when it last failed at this one


class Courier(Generic[R]):
    """``post`` sends a batch; ``acknowledged`` hears of each that is stored, ``refused`` of each that never will be, and why, and
    ``spoiled`` of one that the API has failed at :data:`~evenflow.process.limits.REPORT_FAILURES` times.
    """

    def __init__(
        self,
        post: Callable[[list[R]], Awaitable[Stored]],
        *,
        acknowledged: Callable[[Entry[R]], None],
        refused: Callable[[Entry[R], str], None],
        spoiled: Callable[[Entry[R], str], None],
    ) -> None:
        self._post, self._acknowledged, self._refused, self._spoiled = post, acknowledged, refused, spoiled
        self._loop = asyncio.get_running_loop()
        self._taken = 0  # reports that the API has taken

    async def send(self, batch: list[Entry[R]]) -> bool:
        """Whether the batch is done with for now: stored, refused, or set apart. If not, the API is away."""
        now = self._loop.time()
        for entry in batch:
            entry.report.age_s = now - entry.at
        try:
            answer = await self._post([entry.report for entry in batch])
        except ApiUnavailable as error:
            log.warning("reports wait for the API", reports=len(batch), reason=str(error))
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
            log.warning("reports refused", reports=len(batch), reason=str(error))
            return False
        if len(batch) > 1:
            return all([await self.send([entry]) for entry in batch])
        if error.status == 500:
            return self._failed(batch[0], str(error))
        self._refused(batch[0], str(error))
        return True

    def _failed(self, entry: Entry[R], reason: str) -> bool:
        """The API failed at this report alone. Whether that seems to be the report's fault: meanwhile the API took others."""
        log.warning("the API failed at a report", epoch=entry.epoch, reason=reason)
        before, entry.taken_before = entry.taken_before, self._taken
        if before is None or before == self._taken:
            return entry.once
        entry.failures += 1
        entry.not_before = self._loop.time() + limits.REPORT_PAUSE
        if entry.failures == limits.REPORT_FAILURES:
            self._spoiled(entry, f"the API failed {entry.failures} times at what it reported: {reason}")
        return True
