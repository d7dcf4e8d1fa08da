"""Stores reports in the inbox: reports that arrive during a commit are stored together by the next one.

So the disk sets the number of commits, and no report waits for others to come. A sender is answered after its reports are
committed. Schedulers are woken after the commit; if that fails, their sweep finds the reports. A report that cannot be stored is
found by halving the batch, and fails only its sender.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from evenflow.api import limits
from evenflow.store.db.connect import AsyncConn, AsyncPool
from evenflow.store.db.failures import is_outage
from evenflow.store.serving import dispatch

Failures = dict[int, Exception]  # by position: why a report cannot be stored


class _Delivery:
    """Reports of one request. Its answer lists what could not be stored, and comes once the rest is stored."""

    def __init__(self, reports: Sequence[bytes]) -> None:
        self.reports = reports
        self.size = sum(map(len, reports))
        self.answer: asyncio.Future[Failures] = asyncio.get_running_loop().create_future()


class Inbox:
    """``pool`` is the pool for reports, with one connection for each writer."""

    def __init__(self, pool: AsyncPool) -> None:
        self._pool = pool
        self._waiting: deque[_Delivery] = deque()
        self._writers: set[asyncio.Task[None]] = set()

    async def put(self, reports: Sequence[bytes]) -> Failures:
        """Stores reports, each as JSON for :func:`evenflow.store.serving.dispatch.insert_reports`. Returns when they are committed.

        Raises the database's error if it stores nothing now. Some reports may be stored then; sending them again does no harm.
        """
        delivery = _Delivery(reports)
        self._waiting.append(delivery)
        if len(self._writers) < limits.REPORT_POOL:
            writer = asyncio.create_task(self._write(), name="inbox")
            self._writers.add(writer)
            writer.add_done_callback(self._writers.discard)
        return await delivery.answer

    async def _write(self) -> None:
        """Stores batches until nothing waits."""
        while self._waiting:
            batch = self._take()
            try:
                async with self._pool.connection() as conn:
                    failures = await _insert(conn, [report for delivery in batch for report in delivery.reports])
                _answer(batch, failures)
            except Exception as error:
                for delivery in batch:
                    if not delivery.answer.done():  # already answered by its reports, or its request was given up
                        delivery.answer.set_exception(error)

    def _take(self) -> list[_Delivery]:
        """Takes at least one delivery, and no more than one transaction may hold."""
        batch = [self._waiting.popleft()]
        reports, size = len(batch[0].reports), batch[0].size
        while self._waiting:
            following = self._waiting[0]
            reports, size = reports + len(following.reports), size + following.size
            if reports > limits.REPORTS or size > limits.EXECUTION_BODY:
                break
            batch.append(self._waiting.popleft())
        return batch


def _answer(batch: Sequence[_Delivery], failures: Failures) -> None:
    first = 0
    for delivery in batch:
        end = first + len(delivery.reports)
        if not delivery.answer.done():
            delivery.answer.set_result({at - first: error for at, error in failures.items() if first <= at < end})
        first = end


async def _insert(conn: AsyncConn, reports: Sequence[bytes]) -> Failures:
    """Stores all that can be stored. Raises errors that no single report has caused."""
    try:
        await dispatch.insert_reports(conn, f"[{b','.join(reports).decode()}]")
    except Exception as error:
        if is_outage(error):
            raise
        if len(reports) == 1:
            return {0: error}
    else:
        return {}
    half = len(reports) // 2
    failures = await _insert(conn, reports[:half])
    return failures | {half + at: error for at, error in (await _insert(conn, reports[half:])).items()}
