"""Rules that have to know more: generators that yield sets of questions, and go on when each has its answer.

The questions of a set do not depend on each other, so a driver can send them all before it waits for the first answer. A rule
decides and does no I/O, a driver does I/O and decides nothing: so one rule serves schedulers, those who only look, and tests.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")
A = TypeVar("A")


class Question(Generic[T]):
    """It has its answer when the rule that has asked it goes on."""

    answer: T


AskedTogether = Sequence[Question[Any]]
Asking = Generator[AskedTogether, None, A]  # a rule that asks, and what it returns at its end


def drive(rule: Asking[A], answer: Callable[[AskedTogether], None]) -> A:
    """Has ``answer`` answer what the rule asks, until its end; answers what it returns."""
    while True:
        try:
            asked = next(rule)
        except StopIteration as end:
            result: A = end.value
            return result
        answer(asked)
