"""The rules that the models take for granted of a worker, on its own list of tries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from evenflow.worker import limits, tries
from evenflow.worker.tries import Tries


class Attempt:
    """A try without a process, which ends when it is told to."""

    begun: list[int]
    leftovers = ()

    def __init__(self, assignment: Any, tools: Any, on_end: Callable[[Any], None]) -> None:
        self.epoch, self._on_end = assignment.epoch, on_end

    def begin(self) -> None:
        self.begun.append(self.epoch)

    def abandon(self) -> None:
        self._on_end(self)

    def end(self, reason: str) -> None:
        self._on_end(self)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Epochs in the order in which they were begun."""
    monkeypatch.setattr(Attempt, "begun", [], raising=False)
    monkeypatch.setattr(tries, "Attempt", Attempt)
    return Attempt.begun


def assigned(*epochs: int) -> list[Any]:
    return [SimpleNamespace(epoch=epoch) for epoch in epochs]


@pytest.mark.parametrize("over", [lambda t: t.end([1], "done"), lambda t: t.revoke([1]), lambda t: t.abandon_all()])
async def test_an_epoch_is_begun_once(begun: list[int], over: Callable[[Tries], None]) -> None:
    """R-CS3: a claim's answer may come when the same assignment came by a beat, and its try has long ended."""
    held = Tries(2, 1, SimpleNamespace())  # type: ignore[arg-type]
    held.accept(assigned(1))
    held.accept(assigned(1))
    over(held)
    held.accept(assigned(1, 2))
    assert begun == [1, 2]
    assert held.epochs == [2]
    assert held.free == 1


async def test_what_it_remembers_is_bounded_by_time(begun: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """R-CS3: and not by a number, which a busy worker begins in a moment."""
    now = 1000.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
    held = Tries(2, 1, SimpleNamespace())  # type: ignore[arg-type]
    for epoch in range(20_000):
        held.accept(assigned(epoch))
        now += 0.02
        held.end([epoch], "done")
    held.accept(assigned(*range(20_000)))
    assert begun == list(range(20_000))
    assert held.has_had(0)
    now = 1000.0 + limits.EPOCHS_KNOWN + 1.0
    held.accept(assigned(20_000))
    held.end([20_000], "done")
    assert not held.has_had(0)
    assert held.has_had(19_999)
