"""A simulation of systems that no machine here can hold: python bench/scale.py [SYSTEM ...] [--set NAME=VALUE ...] [--limit].

It plays what a task asks of PostgreSQL, of the API and of schedulers, with the costs that were measured (``Costs``), and says how
long a ready task waits for its start, how busy each part is, and so which one binds first. ``check`` plays a shape that is
measured, too.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import measure

CARRIED_S = 0.25  # from ready to claimed at p99: who waits for longer has met a bound


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU seconds of one core of the machine that measured them, unless said otherwise. docs/explanations/scale.md says how."""

    turn_pg: float = 0.0022  # of a turn, whatever it does
    turn_python: float = 0.0013
    waits: int = 2  # for answers of PostgreSQL in a turn, as tests/scheduler/turns/test_round_trips.py counts them
    task_pg: float = 0.000075  # of a task in a turn: taken, ended, granted, told
    task_python: float = 0.00004
    claim_pg: float = 0.0004  # of a claim, whatever it gets
    claimed_pg: float = 0.00002  # of a try that it gets
    report_pg: float = 0.00002  # of a try's reports
    batch_pg: float = 0.0002  # of a transaction of reports
    claim_api: float = 0.0006  # of a request
    report_api: float = 0.0005
    beat_api: float = 0.0004
    beat_pg: float = 0.0002
    wal_task: int = 2_300  # bytes
    wal_beat: int = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """``tasks_per_s`` is the load; a task runs for ``ran_s`` on average. ``flush_s``: of a commit, by the server's disk;
    ``rtt_s``: to the server and back.
    """

    tasks_per_s: float
    ran_s: float = 100.0
    workers: int = 1_000
    slots: int = 150
    schedulers: int = 10
    apis: int = 8
    cores: int = 16
    flush_s: float = 0.001
    rtt_s: float = 0.0005
    beat_s: float = 3.0
    tasks_per_turn: int = 1_000
    helps_after_s: float = 0.05
    for_s: float = 60.0


class Station:
    """Some servers, alike, behind one line."""

    def __init__(self, servers: int) -> None:
        self._free_at = [0.0] * servers
        self.busy_s = 0.0
        self.servers = servers

    def serve(self, at: float, cost_s: float) -> float:
        """When it is done."""
        begin = max(at, heapq.heappop(self._free_at))
        heapq.heappush(self._free_at, begin + cost_s)
        self.busy_s += cost_s
        return begin + cost_s


class Disk:
    """Flushes one after the other; each carries all commits that came before it began."""

    def __init__(self, flush_s: float) -> None:
        self._flush_s, self._begun, self._done = flush_s, -1.0, 0.0
        self.flushes = 0

    def commit(self, at: float) -> float:
        """When it is durable. Calls come in about the order of their time."""
        if at > self._done:
            self._begun = at
        elif at > self._begun:
            self._begun = self._done
        else:
            return self._done
        self._done = self._begun + self._flush_s
        self.flushes += 1
        return self._done


@dataclass(slots=True)
class Seen:
    waited_s: list[float] = field(default_factory=list)  # from ready to claimed
    turns_s: list[float] = field(default_factory=list)
    started: int = 0
    commits: int = 0
    wal: int = 0


class Simulation:
    """Time goes from event to event. A task becomes ready by a report, is granted by the next turn, claimed by a worker that waits,
    runs, and is reported with all that ended during the commit before.
    """

    def __init__(self, system: System, costs: Costs, seed: int = 1) -> None:
        self.system, self.costs, self.seen = system, costs, Seen()
        self._r = random.Random(seed)
        self.postgres, self.api, self.disk = Station(system.cores), Station(system.apis), Disk(system.flush_s)
        self.python = [Station(1) for _ in range(system.schedulers)]
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._order = itertools.count()
        self._inbox: list[float] = []  # since when what is to be taken waits: a ready task, with the report that made it ready
        self._idle = list(range(system.schedulers))
        self._outbox: list[float] = []  # granted, by when they became ready
        self._collecting = False
        self._reported: list[float] = []

    def run(self) -> dict[str, Any]:
        system = self.system
        for _ in range(system.workers):
            self._at(self._r.random() * system.beat_s, self._beat)
        for _ in range(int(system.tasks_per_s * system.ran_s)):
            self._at(self._r.expovariate(1 / system.ran_s), self._ended)
        now = 0.0
        while self._events and now < system.for_s:
            now, _, event = heapq.heappop(self._events)
            event(now)
        return self._result(now)

    def _at(self, at: float, event: Callable[[float], None]) -> None:
        heapq.heappush(self._events, (at, next(self._order), event))

    def _transaction(self, at: float, pg_s: float, waits: int = 1) -> float:
        self.seen.commits += 1
        return self.disk.commit(self.postgres.serve(at + self.system.rtt_s * waits, pg_s))

    def _beat(self, at: float) -> None:
        self._transaction(self.api.serve(at, self.costs.beat_api), self.costs.beat_pg)
        self.seen.wal += self.costs.wal_beat
        self._at(at + self.system.beat_s, self._beat)

    def _ended(self, at: float) -> None:
        """A process is over: its worker reports it; the API puts what comes during one commit into the next."""
        self._reported.append(self.api.serve(at, self.costs.report_api))
        if not self._collecting:
            self._collecting = True
            self._at(self._reported[-1], self._commit_reports)

    def _commit_reports(self, at: float) -> None:
        batch, self._reported = self._reported, []
        done = self._transaction(at, self.costs.batch_pg + self.costs.report_pg * len(batch))
        self._at(done, lambda now: self._said(now, len(batch)))

    def _said(self, at: float, count: int) -> None:
        self._inbox += [at] * count
        self._collecting = bool(self._reported)
        if self._collecting:
            self._commit_reports(at)
        self._look(at)

    def _look(self, at: float) -> None:
        """A turn, if a scheduler is free: the first that is takes what waits, others only what has waited for long."""
        if not self._inbox or not self._idle:
            return
        helps = len(self._idle) < self.system.schedulers
        if helps and at - self._inbox[0] < self.system.helps_after_s:
            return
        scheduler = self._idle.pop()
        taken, self._inbox = self._inbox[: self.system.tasks_per_turn], self._inbox[self.system.tasks_per_turn :]
        costs, count = self.costs, len(taken)
        thought = self.python[scheduler].serve(at, costs.turn_python + costs.task_python * count)
        done = self._transaction(thought, costs.turn_pg + costs.task_pg * count, costs.waits)
        self.seen.turns_s.append(done - at)
        self.seen.wal += costs.wal_task * count
        self._at(done, lambda now: self._turned(now, scheduler, taken))

    def _turned(self, at: float, scheduler: int, granted: list[float]) -> None:
        self._idle.append(scheduler)
        workers = min(len(granted), self.system.workers)
        share, more = divmod(len(granted), workers)
        taken = iter(granted)
        for worker in range(workers):
            count = share + (worker < more)
            asked = self.api.serve(at, self.costs.claim_api)
            started = self._transaction(asked, self.costs.claim_pg + self.costs.claimed_pg * count)
            for ready in itertools.islice(taken, count):
                self.seen.waited_s.append(started - ready)
                self._at(started + self._r.expovariate(1 / self.system.ran_s), self._ended)
        self.seen.started += len(granted)
        self._look(at)

    def _result(self, now: float) -> dict[str, Any]:
        seen, system = self.seen, self.system
        busy = {
            "postgres": self.postgres.busy_s / system.cores / now,
            "api": self.api.busy_s / system.apis / now,
            "disk": self.disk.flushes * system.flush_s / now,
            "schedulers": sum(seen.turns_s) / system.schedulers / now,
        }
        return {
            "started_per_s": round(seen.started / now),
            "ready_to_claimed_s": measure.quantiles(seen.waited_s),
            "turn_s": measure.quantiles(seen.turns_s),
            "commits_per_s": round(seen.commits / now),
            "flushes_per_s": round(self.disk.flushes / now),
            "wal_mb_per_s": round(seen.wal / now / 1e6, 2),
            "busy": {name: round(share, 3) for name, share in busy.items()},
            "binds_first": max(busy.keys() - {"disk"}, key=busy.__getitem__),  # a flush takes all that came during the last
        }


SYSTEMS = {
    "check": System(
        tasks_per_s=100_000, ran_s=0.001, workers=1, schedulers=1, apis=1, cores=1, flush_s=0.0005, rtt_s=0.0, for_s=10.0
    ),
    "team": System(tasks_per_s=20, workers=20, schedulers=2, apis=2, cores=4),
    "large": System(tasks_per_s=1_000),
    "twice": System(tasks_per_s=2_000, slots=300),
    "five_times": System(tasks_per_s=5_000, slots=750, apis=16, cores=32),
    "ten_times": System(tasks_per_s=10_000, slots=1_500, apis=32, cores=64),
    "cloud": System(tasks_per_s=1_000, flush_s=0.005, rtt_s=0.001),
    "far": System(tasks_per_s=1_000, flush_s=0.005, rtt_s=0.005),
}


def limit_of(system: System, costs: Costs) -> dict[str, Any]:
    """The result at the highest load, to a tenth, that the system carries."""
    carried: dict[str, Any] = {}
    rate, step = system.tasks_per_s, 2.0
    while step > 1.1:
        result = Simulation(replace(system, tasks_per_s=rate * step, ran_s=10.0, for_s=20.0), costs).run()
        if result["ready_to_claimed_s"]["p99"] <= CARRIED_S:
            rate, carried = rate * step, result
        else:
            step = step**0.5
    return carried


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help="some of " + ", ".join(SYSTEMS))
    parser.add_argument(
        "--limit", action="store_true", help="find the load at which a start waits for longer than a quarter of a second"
    )
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="of a system or of the costs")
    given = parser.parse_args()
    if unknown := set(given.systems) - SYSTEMS.keys():
        raise SystemExit(f"There is no system {', '.join(sorted(unknown))}. Choose from {', '.join(SYSTEMS)}.")
    for name in given.systems or SYSTEMS:
        system, costs = SYSTEMS[name], Costs()
        for key, text in (change.split("=", 1) for change in given.set):
            changed = costs if key in {f.name for f in fields(Costs)} else system
            value = type(getattr(changed, key))(text)
            system, costs = (
                (system, replace(costs, **{key: value})) if changed is costs else (replace(system, **{key: value}), costs)
            )
        result = limit_of(system, costs) if given.limit else Simulation(system, costs).run()
        print(json.dumps({"case": "scale", "system": name, **result}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
