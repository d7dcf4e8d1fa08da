"""Schedulers whose turns overlap, step by step: what they get done is counted in turns, and no clock or processor has a say.

Each is at work in a thread of its own, and stands still where it has locked its runs and not yet taken their reports. A step lets
one of them end its turn, and begin the next, up to there. They take turns at that; so while one works, all others have runs in
their hands, as where a database is far away and a turn is as long as its waits.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle
from typing import Any

import psycopg

from evenflow.killpoints import KillPoint, watch
from evenflow.scheduler.advance import TurnOutcome, advance
from evenflow.scheduler.catalog import Catalog
from evenflow.store.db.connect import UNBOUNDED, connect

PATIENCE_S = 60  # for one step, on a machine that has other work


class Staggered:
    """``outcomes``: of each scheduler's turns that have ended."""

    def __init__(self, conns: list[psycopg.Connection[Any]], max_runs: int) -> None:
        self._conns, self._max_runs = conns, max_runs
        self._may_go_on = [threading.Semaphore(0) for _ in conns]
        self._stands_still = threading.Semaphore(0)
        self._threads = [threading.Thread(target=self._work, args=[n], name=f"scheduler {n}") for n in range(len(conns))]
        self._next = cycle(range(len(conns)))
        self._stops = False
        self._errors: list[BaseException] = []
        self.outcomes: dict[int, list[TurnOutcome]] = defaultdict(list)

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()
            self._await()

    def step(self) -> TurnOutcome:
        """What the turn did that has ended with it."""
        number = next(self._next)
        self._may_go_on[number].release()
        self._await()
        return self.outcomes[number][-1]

    def stop(self) -> None:
        self._stops = True
        for may_go_on in self._may_go_on:
            may_go_on.release()
        for thread in self._threads:
            thread.join(PATIENCE_S)

    def pass_point(self, point: KillPoint) -> None:
        name = threading.current_thread().name
        if point is KillPoint.TURN_LOCKED and name.startswith("scheduler "):
            self._stands_still.release()
            self._may_go_on[int(name.split()[1])].acquire()

    def _await(self) -> None:
        assert self._stands_still.acquire(timeout=PATIENCE_S)
        assert not self._errors, self._errors

    def _work(self, number: int) -> None:
        catalog = Catalog()
        try:
            while not self._stops:
                self.outcomes[number].append(advance(self._conns[number], catalog, max_runs=self._max_runs))
        except BaseException as error:
            self._errors.append(error)
        self._stands_still.release()


@contextmanager
def staggered(url: str, schedulers: int, *, max_runs: int) -> Iterator[Staggered]:
    with ExitStack() as stack:
        conns = [stack.enter_context(connect(url, name=f"s{n}", timeouts=UNBOUNDED, generic_plans=True)) for n in range(schedulers)]
        them = Staggered(conns, max_runs)
        watch(them.pass_point)
        stack.callback(watch, None)
        stack.callback(them.stop)
        them.begin()
        yield them
