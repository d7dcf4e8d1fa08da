"""What processes of tasks really did, written down by themselves: beginnings, ends, and that no two of a task ran at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class TaskKey(NamedTuple):
    run_key: int
    task_index: int
    map_index: int


class Process(NamedTuple):
    """``waited``: how often its try was deferred before; ``purpose``: what it has resumed for."""

    of: TaskKey
    epoch: int
    try_number: int
    waited: int = 0
    purpose: str | None = None


class Ledger:
    """Raises :class:`AssertionError` when something is done twice."""

    def __init__(self) -> None:
        self._runs: dict[TaskKey, int] = {}  # the epoch that does something at this moment
        self.begun: dict[int, Process] = {}
        self.outcomes: dict[int, str] = {}  # by epoch; none: killed, or still there

    def begin(self, process: Process) -> None:
        assert process.epoch not in self.begun, f"{process} begins a second time"
        self.begun[process.epoch] = process
        self._go(process)

    def end(self, process: Process, outcome: str) -> None:
        assert self._runs.pop(process.of) == process.epoch
        self.outcomes[process.epoch] = outcome

    def kill(self, process: Process) -> None:
        if self._runs.get(process.of) == process.epoch:
            del self._runs[process.of]

    def stop(self, processes: Iterable[Process]) -> None:
        """They stand still until they go on."""
        for process in processes:
            self.kill(process)

    def go_on(self, processes: Iterable[Process]) -> None:
        for process in processes:
            self._go(process)

    def _go(self, process: Process) -> None:
        other = self._runs.get(process.of)
        assert other is None, f"{process} runs beside the one of epoch {other}"
        self._runs[process.of] = process.epoch
