"""A fleet that does not exist: tasks come, workers start late and end when they are empty, and a scaler says every few seconds how
many there are to be. A week takes some seconds.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from evenflow.core.scaling.policy import ScalingPolicy
from evenflow.core.scaling.sizing import LoadHistory, Look, decide

Task = tuple[float, float]  # when it comes, how long it runs; seconds
Scaler = Callable[[Look, "Fleet"], int]


@dataclass(slots=True)
class Worker:
    ready_at: float
    running: int = 0
    leaves: bool = False
    memory: float = 0.0  # the most tries that it has ever run at once: a process gives nothing back


@dataclass(slots=True)
class Outcome:
    waits: list[float] = field(default_factory=list)
    worker_s: float = 0.0
    sizes: list[tuple[float, int]] = field(default_factory=list)
    evicted: int = 0

    def wait(self, quantile: float) -> float:
        return sorted(self.waits)[min(int(len(self.waits) * quantile), len(self.waits) - 1)]

    def size_at(self, at: float) -> int:
        return next(size for since, size in reversed(self.sizes) if since <= at)

    @property
    def turns(self) -> int:
        """How often the size went the other way than before."""
        steps = [b - a for (_, a), (_, b) in pairwise(self.sizes) if b != a]
        return sum((a > 0) != (b > 0) for a, b in pairwise(steps))


class Fleet:
    """``start_s``: from the decision until a worker takes tasks. ``evicts``: one that is to go takes its tasks with it; they begin
    again elsewhere.
    """

    def __init__(self, tasks: Iterable[Task], *, slots: int, start_s: float, evicts: bool = False, size: int = 0) -> None:
        self.tasks = sorted(tasks)
        self.slots, self.start_s, self.evicts = slots, start_s, evicts
        self.workers: dict[int, Worker] = {n: Worker(0.0) for n in range(size)}
        self.wanted = size
        self.now = 0.0
        self.outcome = Outcome()
        self._free: deque[int] = deque(n for n in range(size) for _ in range(slots))
        self._queue: deque[tuple[float, float]] = deque()
        self._ends: list[tuple[float, int, float, float]] = []  # when, which worker, when it came, how long it takes
        self._starting: list[tuple[float, int]] = []
        self._next, self._made = 0, size

    def run(self, scaler: Scaler, *, until: float, every_s: float) -> Outcome:
        while self.now < until:
            self.resize(scaler(self.look(), self))
            self._advance(self.now + every_s)
        self.outcome.waits += [self.now - came for came, _ in self._queue]
        return self.outcome

    def look(self) -> Look:
        ended = [takes for _, _, _, takes in self._ends]
        ready = sum(worker.ready_at <= self.now and not worker.leaves for worker in self.workers.values())
        return Look(
            at=self.now,
            running=len(self._ends),
            waiting=len(self._queue),
            oldest_wait=self.now - self._queue[0][0] if self._queue else 0.0,
            duration=sum(ended) / len(ended) if ended else None,
            replicas=self.wanted,
            ready=ready * self.slots,
        )

    def resize(self, size: int) -> None:
        if not self.outcome.sizes or size != self.wanted:
            self.outcome.sizes.append((self.now, size))
        self.wanted = size
        staying = [number for number, worker in self.workers.items() if not worker.leaves]
        for _ in range(size - len(staying)):
            self.workers[self._made] = Worker(self.now + self.start_s)
            heapq.heappush(self._starting, (self.now + self.start_s, self._made))
            self._made += 1
        # What goes first: what is cheapest, or with evictions what is youngest, which is what nobody told otherwise.
        order = sorted(staying, key=(lambda n: -n) if self.evicts else (lambda n: (self.workers[n].running, -n)))
        for number in order[: max(0, len(staying) - size)]:
            self._leave(number)

    def _leave(self, number: int) -> None:
        worker = self.workers[number]
        worker.leaves = True
        if self.evicts and worker.running:
            lost = [end for end in self._ends if end[1] == number]
            self._ends = [end for end in self._ends if end[1] != number]
            heapq.heapify(self._ends)
            self.outcome.evicted += len(lost)
            self._queue.extend((self.now, takes) for _, _, _, takes in lost)
            worker.running = 0
        if not worker.running:
            del self.workers[number]

    def _advance(self, to: float) -> None:
        while True:
            comes = self.tasks[self._next][0] if self._next < len(self.tasks) else to
            ends = self._ends[0][0] if self._ends else to
            starts = self._starting[0][0] if self._starting else to
            at = min(comes, ends, starts, to)
            self.outcome.worker_s += len(self.workers) * (at - self.now)
            self.now = at
            if at >= to:
                return
            if at == ends:
                self._ended()
            elif at == starts:
                _, number = heapq.heappop(self._starting)
                if number in self.workers:
                    self._free.extend([number] * self.slots)
            else:
                self._queue.append(self.tasks[self._next])
                self._next += 1
            self._serve()

    def _ended(self) -> None:
        _, number, _, _ = heapq.heappop(self._ends)
        worker = self.workers[number]
        worker.running -= 1
        if not worker.leaves:
            self._free.append(number)
        elif not worker.running:
            del self.workers[number]

    def _serve(self) -> None:
        while self._queue and self._free:
            number = self._free.popleft()
            worker = self.workers.get(number)
            if worker is None or worker.leaves:
                continue
            came, takes = self._queue.popleft()
            self.outcome.waits.append(self.now - came)
            worker.running += 1
            worker.memory = max(worker.memory, worker.running)
            heapq.heappush(self._ends, (self.now + takes, number, came, takes))


def evenflow(policy: ScalingPolicy) -> Scaler:
    history = LoadHistory()

    def scaler(look: Look, fleet: Fleet) -> int:
        history.add(look, policy)
        sizing = decide(history, policy)
        if sizing.replicas != look.replicas:
            history.moved(look.at, sizing.replicas - look.replicas)
        return sizing.replicas

    return scaler
