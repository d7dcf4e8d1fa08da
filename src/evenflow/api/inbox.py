"""The way of reports into the inbox: what comes while a commit is under way is stored by the next one, whoever sent it.

So as many commits are made as the disk can take, and no report waits for company. Nobody is answered before its own reports are
committed; schedulers are woken behind the commit, and should that fail, their sweep finds them. What cannot be stored is found by
halves, and is a matter of its sender alone.
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
    """Reports of one request. Its answer is what could not be stored, once everything else is."""

    def __init__(self, reports: Sequence[bytes]) -> None:
        self.reports = reports
        self.size = sum(map(len, reports))
        self.answer: asyncio.Future[Failures] = asyncio.get_running_loop().create_future()


class Inbox:
    """``pool`` is that of reports, with a connection for each writer."""

    def __init__(self, pool: AsyncPool) -> None:
        self._pool = pool
        self._waiting: deque[_Delivery] = deque()
        self._writers: set[asyncio.Task[None]] = set()

    async def put(self, reports: Sequence[bytes]) -> Failures:
        """Stores reports, each as JSON for :func:`evenflow.store.serving.dispatch.insert_reports`. Returns when they are committed.

        Raises what keeps the database from storing anything. Some may be stored then; that they come again is no harm.
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
                    if not delivery.answer.done():  # by its reports, or because its request was given up
                        delivery.answer.set_exception(error)

    def _take(self) -> list[_Delivery]:
        """At least one, and no more than one transaction is to hold."""
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
    """Stores all that can be stored. Raises what is the fault of none of them."""
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
