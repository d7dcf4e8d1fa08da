"""What an autoscaler has to know for a forecast: graphs of what runs, and how long tasks have taken. Both are read rarely and kept.

A look reads what workers have and, of what follows soon, the counters of its runs: so it costs by what runs, whatever waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from evenflow.autoscaler.limits import (
    GRAPHS_AT_ONCE,
    HABIT_INSTANCES,
    HABIT_RUNS,
    HABITS_AT_ONCE,
    HABITS_S,
    MOST_HABITS,
    MOST_TASKS_KNOWN,
)
from evenflow.core.graph import Graph
from evenflow.core.limits import MOST_TRIES_COUNTED
from evenflow.core.model import DagSpec
from evenflow.core.scaling.forecast import RunningTask, SlotChange, TaskHabits, ends_within, foresee, places_behind
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving import operations, scaling

VersionTask = tuple[int, int]  # (version_key, task_index)


class Forecasting:
    """Of one autoscaler."""

    def __init__(self) -> None:
        self._graphs: dict[int, Graph] = {}  # by version, the one used last at the end
        self._habits: dict[VersionTask, TaskHabits] = {}
        self._read_at: dict[VersionTask, float] = {}

    async def read(self, conn: AsyncConn, now: float, ahead_s: float) -> list[SlotChange]:
        """What ends and comes within ``ahead_s``."""
        running = await scaling.read_running(conn, most=MOST_TRIES_COUNTED)
        if not running:
            return []
        await self._learn_graphs(conn, running)
        await self._learn_habits(conn, running, now)
        ends = ends_within(running, self._habits, ahead_s)
        places = places_behind(ends, self._graphs)
        versions = {task.run_key: task.version_key for task in running}
        successors = await scaling.read_successors(conn, places) if places else []
        names = {self._graphs[versions[run_key]].task(index).pool for run_key, index in places}
        pools = await scaling.read_pools(conn, names) if names else {}
        return foresee(ends, self._graphs, self._habits, successors, pools)

    async def _learn_graphs(self, conn: AsyncConn, running: Iterable[RunningTask]) -> None:
        wanted = {task.version_key for task in running}
        missing = sorted(wanted - self._graphs.keys(), reverse=True)[:GRAPHS_AT_ONCE]
        if missing:
            specs = await operations.read_specs(conn, missing)
            self._graphs |= await asyncio.to_thread(_graphs, specs)
        for version in wanted & self._graphs.keys():
            self._graphs[version] = self._graphs.pop(version)
        size = sum(graph.n for graph in self._graphs.values())
        for version in [*self._graphs]:
            if size <= MOST_TASKS_KNOWN or version in wanted:
                break
            size -= self._graphs.pop(version).n

    async def _learn_habits(self, conn: AsyncConn, running: Iterable[RunningTask], now: float) -> None:
        """Of what runs, and of mapped tasks that follow it."""
        runs: dict[VersionTask, int] = {}
        for task in running:
            if (graph := self._graphs.get(task.version_key)) is not None:
                behind = [index for index in graph.downstream[task.task_index] if graph.mapped[index]]
                for index in (task.task_index, *behind):
                    key = (task.version_key, index)
                    runs[key] = min(task.run_key, runs.get(key, task.run_key))
        stale = sorted((self._read_at.get(key, 0.0), key) for key in runs)
        due = [key for read_at, key in stale if now - read_at >= HABITS_S][:HABITS_AT_ONCE]
        if due:
            asked = {key: runs[key] for key in due}
            self._habits |= await scaling.read_habits(conn, asked, runs=HABIT_RUNS, instances=HABIT_INSTANCES)
            self._read_at |= dict.fromkeys(due, now)
        if len(self._read_at) > MOST_HABITS:
            for key in self._read_at.keys() - runs.keys():
                del self._read_at[key]
                self._habits.pop(key, None)


def _graphs(specs: Mapping[int, str]) -> dict[int, Graph]:
    return {version: Graph.of(DagSpec.from_json(spec)) for version, spec in specs.items()}
