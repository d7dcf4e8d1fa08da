"""Violations put into a history that has none, each in a run of its own or at a moment of its own, so that each is known again."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from evenflow.insights.lake import write_file
from evenflow.insights.sample import POOLS, days, known, make_dags

# Places of columns in the rows of events.
RUN, TASK, _, AT, XACT, EPOCH, TRY, EVENT, STATE = range(9)
R_AT, R_XACT, R_EVENT, R_STATE = 1, 2, 3, 4
US = timedelta(microseconds=1)

Event = list[Any]


@dataclass(frozen=True, slots=True)
class Seed:
    """What was done, and how it must be told: as one of these kinds, of this run or of this moment."""

    what: str
    kinds: frozenset[str]
    run_key: int
    at: datetime | None = None

    def is_found(self, violations: list[dict[str, Any]]) -> bool:
        at_us = None if self.at is None else round((self.at - datetime.fromtimestamp(0, self.at.tzinfo)) / US)
        return any(
            v["kind"] in self.kinds and (v["run_key"] == self.run_key if at_us is None else v["at_us"] == at_us) for v in violations
        )


class History:
    """Of the sample, in memory."""

    def __init__(self, events: int, seed: int) -> None:
        self.chance = random.Random(seed)
        self.dags = make_dags(random.Random(seed))
        self.tables: dict[str, list[Event]] = defaultdict(list)
        for _, tables in days(events, seed=seed):
            for table, rows in tables.items():
                self.tables[table] += [list(row) for row in rows]
        self.of_run: dict[int, list[Event]] = defaultdict(list)
        for row in self.tables["task_events"]:
            self.of_run[row[RUN]].append(row)
        self.free = [key for key, rows in self.of_run.items() if any(row[EVENT] == "succeed" for row in rows)]
        self.chance.shuffle(self.free)

    def write(self, lake: Path) -> None:
        for table, rows in {**known(self.dags), **self.tables}.items():
            write_file(lake / "bronze" / table / "seeded.parquet", table, [[tuple(row) for row in rows]])

    def take(self, event: str) -> Event:
        """Such an event of a run that nothing was done to yet."""
        while True:
            key = self.free.pop()
            found = [row for row in self.of_run[key] if row[EVENT] == event]
            if found:
                return self.chance.choice(found)

    # -- what is done ------------------------------------------------------------------------------------------------------

    def forget(self, event: str) -> Seed:
        row = self.take(event)
        self.tables["task_events"].remove(row)
        return Seed(f"{event} was left out", frozenset({"illegal move"}), row[RUN])

    def repeat(self, event: str) -> Seed:
        row = self.take(event)
        self.tables["task_events"].append([*row[:AT], row[AT] + US, *row[XACT:]])
        return Seed(f"{event} happened twice", frozenset({"happened twice"}), row[RUN])

    def mistake(self, event: str, state: str) -> Seed:
        row = self.take(event)
        row[STATE] = state
        return Seed(f"{event} became {state}", frozenset({"illegal move"}), row[RUN])

    def confuse(self) -> Seed:
        row = self.take("start")
        row[EPOCH] += 10_000_000
        return Seed("a start of another dispatch", frozenset({"of another dispatch"}), row[RUN])

    def share(self) -> Seed:
        one, other = self.take("grant"), self.take("grant")
        epoch = other[EPOCH]
        for row in self.of_run[other[RUN]]:
            if row[EPOCH] == epoch:
                row[EPOCH] = one[EPOCH]
        return Seed("a dispatch of two", frozenset({"dispatch of two"}), min(one[RUN], other[RUN]))

    def crowd(self, pool: str) -> Seed:
        """A task that had to wait for a full pool starts as soon as it is ready."""
        capacity, used = POOLS[pool], 0
        slots = {(d.key, t.index): t.pool_slots for d in self.dags for t in d.tasks if t.pool == pool}
        dag_of = {row[0]: row[3] for row in self.tables["runs"]}
        starts, candidates = {}, []
        for row in sorted(self.tables["task_events"], key=lambda row: (row[AT], row[EPOCH])):
            size = slots.get((dag_of[row[RUN]], row[TASK]))
            if size is None:
                continue
            if row[EVENT] == "grant":
                used += size
                starts[row[RUN], row[TASK], row[TRY]] = row
            elif row[EVENT] in ("succeed", "retry"):
                used -= size
            elif row[EVENT] == "ready" and row[TRY] == 0 and used + size > capacity:
                candidates.append(row)
        waited = [(r, g) for r in candidates if (g := starts.get((r[RUN], r[TASK], 1))) and g[AT] - r[AT] > timedelta(seconds=5)]
        waited = [(r, g) for r, g in waited if r[RUN] in self.free]
        ready, grant = self.chance.choice(waited)
        self.free.remove(ready[RUN])
        start = next(row for row in self.of_run[ready[RUN]] if row[EPOCH] == grant[EPOCH] and row[EVENT] == "start")
        # Half a second later: no other transaction of the sample is there.
        grant[AT], start[AT] = ready[AT] + timedelta(seconds=0.5), ready[AT] + timedelta(seconds=0.5) + US
        grant[XACT] = start[XACT] = -grant[XACT]
        return Seed(f"a start in the full pool {pool}", frozenset({"above a limit"}), 0, start[AT])

    def hurry(self) -> Seed:
        """A run that had to wait for others of its DAG begins as soon as it is made."""
        made = {row[0]: row[6] for row in self.tables["runs"]}
        starts = [
            row
            for row in self.tables["run_events"]
            if row[R_EVENT] == "start" and row[R_AT] - made[row[RUN]] > timedelta(seconds=30)
        ]
        row = self.chance.choice([row for row in starts if row[RUN] in self.free])
        self.free.remove(row[RUN])
        row[R_AT] = made[row[RUN]] + timedelta(seconds=0.5)
        return Seed("a run too many", frozenset({"more runs than allowed"}), row[RUN])

    def end_twice(self) -> Seed:
        while True:
            key = self.free.pop()
            for row in self.tables["run_events"]:
                if row[RUN] == key and row[R_EVENT] == "succeed":
                    self.tables["run_events"].append([row[RUN], row[R_AT] + US, *row[R_XACT:]])
                    return Seed("a run ended twice", frozenset({"illegal move of a run"}), key)


def seed(history: History, count: int = 50) -> list[Seed]:
    """So many violations of all kinds, by turns."""
    ways = (
        lambda: history.crowd("warehouse"),
        history.hurry,
        lambda: history.crowd("small"),
        lambda: history.forget("grant"),
        lambda: history.repeat("grant"),
        lambda: history.repeat("start"),
        lambda: history.repeat("succeed"),
        lambda: history.mistake("succeed", "failed"),
        lambda: history.mistake("grant", "running"),
        history.confuse,
        history.share,
        history.end_twice,
    )
    return [ways[n % len(ways)]() for n in range(count)]
