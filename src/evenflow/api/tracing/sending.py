"""Sends the traces of runs that have ended. Any number of API servers may do this: each takes other runs.

A look at history notes ends of runs in ``trace_due``, in the transaction that says how far was looked. A run leaves that table when
the collector has taken its spans. If an API server dies in between, another one tells its runs again, with the same ids.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

import aiohttp

from evenflow.api import limits
from evenflow.api import observations as seen
from evenflow.api.tracing.history import RunCause, RunLife, RunMove, ToldRun, life_of
from evenflow.api.tracing.otlp import Collector, pause_s
from evenflow.api.tracing.settings import TraceSettings
from evenflow.api.tracing.spans import Pages, RunSpan, spans_of_run, spans_of_tasks
from evenflow.core import metrics
from evenflow.core.history.tries import TaskMove
from evenflow.core.meter import Meter
from evenflow.core.tracing import RunTrace, TracedRuns
from evenflow.sdk.pages import page_of
from evenflow.store.db.connect import AsyncPool
from evenflow.store.serving import traces
from evenflow.store.serving.traces import DueTrace
from evenflow.telemetry.observing import observe


class HistoryUnreadable(Exception):
    """Spans cannot be made of what history says of a run."""


@contextmanager
def making() -> Iterator[None]:
    """Tells what is wrong with one run from what is wrong with the database or the collector."""
    try:
        yield
    except Exception as error:
        raise HistoryUnreadable(f"{type(error).__name__}: {error}") from error


class TraceSender:
    def __init__(self, pool: AsyncPool, settings: TraceSettings, installation: str, meter: Meter) -> None:
        self._pool, self._settings, self._installation, self._meter = pool, settings, installation, meter
        self._traced = TracedRuns(installation, settings.ratio)
        self._pages = _pages(settings.public_url)
        self._failures = 0

    async def run(self) -> None:
        """Runs until it is cancelled."""
        async with aiohttp.ClientSession() as session:
            resource = {
                "service.name": "evenflow",
                "service.version": version("evenflow"),
                "service.namespace": self._installation,
            }
            collector = Collector(session, self._settings.url, self._settings.headers, resource)
            while True:
                try:
                    await self.look()
                    more = await self.send_some(collector)
                except Exception as error:  # the database or the collector is away; what is due stays so
                    await self._wait_for(f"{type(error).__name__}: {error}"[:300])
                    continue
                if not more:
                    await asyncio.sleep(limits.TRACES_PAUSE)

    async def _wait_for(self, reason: str) -> None:
        self._failures += 1
        self._meter.count(metrics.TRACE_FAILURES)
        wait_s = pause_s(self._failures)
        observe(seen.traces_not_sent(self._settings.url, reason, round(wait_s, 1)))
        await asyncio.sleep(wait_s)

    async def look(self) -> None:
        """Notes what has ended, and gives up what waits too long."""
        async with self._pool.connection() as conn:
            lost = await traces.look(conn, age_s=limits.TRACES_AGE, most=limits.TRACES_WAITING)
        if lost:
            self._meter.count(metrics.TRACES_LOST, lost)
            observe(seen.traces_given_up(lost))

    async def send_some(self, collector: Collector) -> bool:
        """Returns whether there may be more. Raises what the collector does; all that was taken is then due again."""
        async with self._pool.connection() as conn:
            due = await traces.take_due(conn, limit=limits.TRACES_AT_ONCE, again_s=limits.TRACES_AGAIN)
        is_told = False
        try:
            await self._send(collector, due)
            is_told = True
        finally:
            async with self._pool.connection() as conn:
                await (traces.forget if is_told else traces.give_back)(conn, due)
        if due and self._failures:
            self._failures = 0
            observe(seen.traces_sent_again(self._settings.url))
        return len(due) == limits.TRACES_AT_ONCE

    async def _send(self, collector: Collector, due: Sequence[DueTrace]) -> None:
        """Sends runs together, as far as a request has room."""
        waiting: list[RunSpan] = []
        for one in due:
            trace = self._traced.trace_of(one.run_key, one.traceparent)
            if not trace.is_sampled:
                continue
            try:
                async for spans in self._told(trace, one):
                    waiting.extend(spans)
                    while len(waiting) >= limits.TRACE_SPANS:
                        await self._post(collector, waiting[: limits.TRACE_SPANS])
                        del waiting[: limits.TRACE_SPANS]
            except HistoryUnreadable as error:  # the others are told all the same
                self._meter.count(metrics.TRACES_LOST)
                observe(seen.trace_not_made(one.run_key, error))
        if waiting:
            await self._post(collector, waiting)

    async def _post(self, collector: Collector, spans: Sequence[RunSpan]) -> None:
        taken = await collector.send(spans)
        self._meter.count(metrics.TRACE_SPANS, len(spans) - taken.refused)
        if taken.refused:
            self._meter.count(metrics.TRACE_SPANS_REFUSED, taken.refused)
            observe(seen.spans_refused(self._settings.url, taken.refused, taken.reason))

    async def _told(self, trace: RunTrace, one: DueTrace) -> AsyncIterator[Sequence[RunSpan]]:
        """Yields the spans of a run by parts that fit into memory; its own come first. No connection is held meanwhile. Raises
        :class:`HistoryUnreadable`.
        """
        found = await self._read_run(one)
        if found is None:
            return  # it was deleted meanwhile
        run, life = found
        with making():
            spans = spans_of_run(trace, run, life, self._pages)
        yield spans
        after = (-1, -1)
        while True:
            async with self._pool.connection() as conn:
                rows = await traces.list_moves(conn, run.run_key, after=after, limit=limits.TRACE_MOVES)
            if rows:
                with making():  # 0.5 s of CPU at most, in which other requests are answered
                    spans, after = await asyncio.to_thread(self._made, trace, run, life, rows)
                yield spans
            if len(rows) < limits.TRACE_MOVES:
                return

    def _made(
        self, trace: RunTrace, run: ToldRun, life: RunLife, rows: Sequence[tuple[Any, ...]]
    ) -> tuple[list[RunSpan], tuple[int, int]]:
        """Returns the spans of these moves, and the last task instance that they are of."""
        moves, last = _whole_instances([TaskMove(*row) for row in rows])
        return list(spans_of_tasks(trace, run, life, moves, self._pages)), last

    async def _read_run(self, one: DueTrace) -> tuple[ToldRun, RunLife] | None:
        async with self._pool.connection() as conn:
            row = await traces.read_run(conn, one.run_key, causes=limits.TRACE_CAUSES)
            moves = [RunMove(*move) for move in await traces.list_run_moves(conn, one.run_key)]
        if row is None:
            return None
        with making():
            run = ToldRun(**{**row, "causes": [RunCause(*cause) for cause in row["causes"]]}, moves=moves)
            life = life_of(run, one.ended_at)
        return None if life is None else (run, life)


def _whole_instances(moves: list[TaskMove]) -> tuple[list[TaskMove], tuple[int, int]]:
    """Returns the moves without those of an instance that a page may have cut, unless it fills the page, and the last instance that
    they are of.
    """
    if len(moves) == limits.TRACE_MOVES:
        cut = moves[-1][:2]
        moves = [move for move in moves if move[:2] != cut] or moves
    return moves, moves[-1][:2]


def _pages(public_url: str) -> Pages:
    def page(run: ToldRun, task_id: str, map_index: int) -> str:
        return page_of(public_url, run.dag_id, run.run_id, task_id, map_index)

    def log(run: ToldRun, task_id: str, map_index: int, try_number: int) -> str:
        names = (quote(name, safe="") for name in (run.dag_id, run.run_id, task_id))
        dag, of_run, task = names
        query = f"map_index={map_index}&try_number={try_number}"
        return f"{public_url}/api/v1/dags/{dag}/runs/{of_run}/tasks/{task}/logs?{query}"

    return Pages(page, log)
