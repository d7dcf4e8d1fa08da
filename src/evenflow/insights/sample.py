"""A history of made-up DAGs that obeys every limit: to try the marts, to test them, and to time them at any size.

The same numbers make the same history. Time goes in steps of a second; in each, tries end, runs begin, and ready tasks start while
their pool, executor and run have room. Days are written one by one, so memory holds one day.
"""

from __future__ import annotations

import heapq
import random
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from evenflow.insights.lake import write_file

BEGIN = datetime(2026, 1, 5, tzinfo=UTC)
POOLS = {"default_pool": 64, "warehouse": 6, "small": 2}
EXECUTOR_SLOTS = 96
DAGS = 40
EVENTS_A_TRY = 4  # about: ready, grant, start, end
SPARK_EVERY = 5  # every fifth task of a DAG uses Spark
SPARK_CORES = 4

SampleRows = dict[str, list[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class SampleTask:
    index: int
    pool: str
    pool_slots: int
    upstream: tuple[int, ...]
    seconds: float  # of a usual try
    fails: float  # share of first tries


@dataclass(frozen=True, slots=True)
class SampleDag:
    key: int
    dag_id: str
    owner: str
    tasks: tuple[SampleTask, ...]
    max_active_tasks: int
    max_active_runs: int
    every_s: int
    downstream: tuple[tuple[int, ...], ...]


@dataclass(slots=True)
class _SampleRun:
    key: int
    dag: SampleDag
    missing: list[int]
    left: int
    running: int = 0


@dataclass(slots=True)
class _SampleClock:
    """Numbers of transactions and dispatches; the time of each event is its transaction's, and these are a microsecond apart."""

    us: int
    xact: int = 1000
    epoch: int = 0
    next_us: int = 0

    def stamp(self) -> datetime:
        self.next_us = max(self.next_us + 1, self.us)
        return datetime.fromtimestamp(self.next_us // 1_000_000, UTC) + timedelta(microseconds=self.next_us % 1_000_000)


@dataclass(slots=True)
class History:
    """Events, second by second. ``rows`` are those of the current day."""

    dags: list[SampleDag]
    chance: random.Random
    clock: _SampleClock
    rows: SampleRows = field(default_factory=lambda: defaultdict(list))
    used: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    active: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    queued: dict[str, deque[int]] = field(default_factory=lambda: defaultdict(deque))
    ready: dict[str, deque[tuple[_SampleRun, SampleTask, int]]] = field(default_factory=lambda: defaultdict(deque))
    ends: list[tuple[int, int, _SampleRun, SampleTask, int, int]] = field(default_factory=list)
    runs_made: int = 0
    events: int = 0
    is_closing: bool = False

    @property
    def has_work(self) -> bool:
        return bool(self.ends) or any(self.ready.values()) or any(self.queued.values())

    def second(self) -> None:
        clock = self.clock
        clock.xact += 1
        while self.ends and self.ends[0][0] <= clock.us:
            _, epoch, run, task, number, _ = heapq.heappop(self.ends)
            self._end(run, task, number, epoch)
        for dag in self.dags:
            if not self.is_closing and clock.us // 1_000_000 % dag.every_s == dag.key % dag.every_s:
                self._make_run(dag)
            while self.queued[dag.dag_id] and self.active[dag.dag_id] < dag.max_active_runs:
                self._begin(dag, self.queued[dag.dag_id].popleft())
        clock.xact += 1
        for pool, waiting in self.ready.items():
            self._start_what_fits(pool, waiting)
        clock.us += 1_000_000

    def _make_run(self, dag: SampleDag) -> None:
        self.runs_made += 1
        key = (self.clock.us // 1000) << 20 | (self.runs_made & 1048575)
        at = self.clock.stamp()
        self.rows["runs"].append((key, dag.dag_id, f"scheduled__{at:%Y-%m-%dT%H:%M:%S}", dag.key, "scheduled", at, at))
        self.queued[dag.dag_id].append(key)

    def _begin(self, dag: SampleDag, key: int) -> None:
        run = _SampleRun(key, dag, [len(task.upstream) for task in dag.tasks], len(dag.tasks))
        self.active[dag.dag_id] += 1
        self._run_event(run, "start", "running")
        for task in dag.tasks:
            if not task.upstream:
                self._make_ready(run, task, 0)

    def _make_ready(self, run: _SampleRun, task: SampleTask, number: int) -> None:
        self._event(run, task, 0, number, "ready", "scheduled")
        self.ready[task.pool].append((run, task, number))

    def _start_what_fits(self, pool: str, waiting: deque[tuple[_SampleRun, SampleTask, int]]) -> None:
        for _ in range(min(len(waiting), 4 * POOLS[pool])):
            run, task, number = waiting.popleft()
            fits = self.used[pool] + task.pool_slots <= POOLS[pool] and self.used["executor"] < EXECUTOR_SLOTS
            if not fits or run.running >= run.dag.max_active_tasks:
                waiting.append((run, task, number))
                continue
            self._start(run, task, number + 1)

    def _start(self, run: _SampleRun, task: SampleTask, number: int) -> None:
        self.used[task.pool] += task.pool_slots
        self.used["executor"] += 1
        run.running += 1
        self.clock.epoch += 1
        epoch = self.clock.epoch
        self._event(run, task, epoch, number, "grant", "queued")
        self._event(run, task, epoch, number, "start", "running")
        seconds = task.seconds * self.chance.lognormvariate(0.0, 0.3) * (30.0 if self.chance.random() < 0.0005 else 1.0)
        heapq.heappush(self.ends, (self.clock.us + max(1, round(seconds)) * 1_000_000, epoch, run, task, number, 0))

    def _end(self, run: _SampleRun, task: SampleTask, number: int, epoch: int) -> None:
        self.used[task.pool] -= task.pool_slots
        self.used["executor"] -= 1
        run.running -= 1
        if number == 1 and self.chance.random() < task.fails:
            self._event(run, task, epoch, number, "retry", "up_for_retry", '{"reason": "the sample fails now and then"}')
            self._event(run, task, epoch, number, "ready", "scheduled")
            self.ready[task.pool].append((run, task, number))
            return
        self._event(run, task, epoch, number, "succeed", "success")
        if task.index % SPARK_EVERY == 0:
            self._application(run, task, epoch, number)
        run.left -= 1
        for index in run.dag.downstream[task.index]:
            run.missing[index] -= 1
            if not run.missing[index]:
                self._make_ready(run, run.dag.tasks[index], 0)
        if not run.left:
            self.active[run.dag.dag_id] -= 1
            self._run_event(run, "succeed", "success")

    def _event(
        self, run: _SampleRun, task: SampleTask, epoch: int, number: int, event: str, state: str, detail: str | None = None
    ) -> None:
        at, xact = self.clock.stamp(), self.clock.xact
        self.rows["task_events"].append((run.key, task.index, -1, at, xact, epoch, number, event, state, detail))
        self.events += 1

    def _application(self, run: _SampleRun, task: SampleTask, epoch: int, number: int) -> None:
        wall_us = round(task.seconds) * 1_000_000
        took = (f"app-{epoch}", SPARK_CORES, wall_us, wall_us * SPARK_CORES // 2, wall_us // 20)
        moved = tuple((task.index + 1) * size for size in (2**26, 2**20, 2**24, 0))
        self.rows["spark_applications"].append(
            (run.key, task.index, -1, self.clock.stamp(), self.clock.xact, epoch, number, *took, *moved)
        )

    def _run_event(self, run: _SampleRun, event: str, state: str) -> None:
        self.rows["run_events"].append((run.key, self.clock.stamp(), self.clock.xact, event, state, "scheduler", None))
        self.events += 1


def make_dags(chance: random.Random, count: int = DAGS) -> list[SampleDag]:
    """Makes DAGs from chains to fans, some of them bound by a small pool."""
    made = []
    for key in range(1, count + 1):
        size = chance.choice((3, 5, 8, 13, 21))
        tasks = []
        for index in range(size):
            upstream = tuple(sorted(chance.sample(range(index), min(index, chance.choice((1, 1, 2)))))) if index else ()
            pool = chance.choice(
                ("default_pool", "default_pool", "default_pool", "warehouse", "small" if key % 8 == 0 else "default_pool")
            )
            slots = 2 if pool == "warehouse" and chance.random() < 0.2 else 1
            tasks.append(SampleTask(index, pool, slots, upstream, chance.uniform(2, 40), chance.choice((0.0, 0.0, 0.05))))
        downstream = tuple(tuple(task.index for task in tasks if index in task.upstream) for index in range(size))
        every = chance.choice((60, 120, 300, 600, 900))
        made.append(
            SampleDag(key, f"dag_{key:03}", f"team_{key % 5}", tuple(tasks), chance.choice((4, 8, 16)), 4, every, downstream)
        )
    return made


def days(events: int, *, seed: int = 1, dags: int = DAGS, ends: bool = False) -> Iterator[tuple[date, SampleRows]]:
    """Yields day after day until there are enough events, each with its rows by table; with ``ends``, runs that have begun continue
    until they are over.
    """
    chance = random.Random(seed)
    history = History(make_dags(chance, dags), chance, _SampleClock(int(BEGIN.timestamp()) * 1_000_000))
    day = BEGIN
    is_over = False
    while not is_over:
        end_us = int((day + timedelta(days=1)).timestamp()) * 1_000_000
        while history.clock.us < end_us and not is_over:
            history.second()
            history.is_closing = history.events >= events
            is_over = history.is_closing and not (ends and history.has_work)
        yield day.date(), history.rows
        history.rows = defaultdict(list)
        day += timedelta(days=1)


def known(dags: list[SampleDag]) -> SampleRows:
    """Returns a history's rows about its DAGs and limits."""
    tasks = [
        (
            d.key,
            d.dag_id,
            t.index,
            f"task_{t.index:02}",
            "python",
            d.owner,
            t.pool,
            t.pool_slots,
            "worker",
            None,
            None,
            d.max_active_tasks,
            d.max_active_runs,
        )
        for d in dags
        for t in d.tasks
    ]
    edges = [(d.key, t.index, upstream) for d in dags for t in d.tasks for upstream in t.upstream]
    limits = [("pool", name, BEGIN, slots, False) for name, slots in POOLS.items()] + [
        ("executor", "worker", BEGIN, EXECUTOR_SLOTS, False)
    ]
    return {"tasks": tasks, "edges": edges, "limits": limits, "pauses": [], "spark_applications": []}


def write_sample(lake: Path, events: int, *, seed: int = 1, dags: int = DAGS, ends: bool = False) -> int:
    """Writes the bronze of such a history; returns its number of events."""
    count = 0
    for table, rows in known(make_dags(random.Random(seed), dags)).items():
        write_file(lake / "bronze" / table / "sample.parquet", table, [rows])
    for day, tables in days(events, seed=seed, dags=dags, ends=ends):
        for table, rows in tables.items():
            write_file(lake / "bronze" / table / f"day={day}" / "sample.parquet", table, [rows])
            count += len(rows) if table in ("task_events", "run_events") else 0
    return count
