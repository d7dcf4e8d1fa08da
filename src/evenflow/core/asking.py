"""Rules that need more facts: generators that yield sets of questions, and continue when each question has its answer.

The questions of a set do not depend on each other, so a driver can send them all before it waits for the first answer. A rule
decides and does no I/O, a driver does I/O and decides nothing. So one rule serves schedulers, readers that change nothing, and
tests.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")
A = TypeVar("A")


class Question(Generic[T]):
    """A question. It has its answer when the rule that asked it continues."""

    answer: T


AskedTogether = Sequence[Question[Any]]
Asking = Generator[AskedTogether, None, A]  # a rule that asks, with its result


def drive(rule: Asking[A], answer: Callable[[AskedTogether], None]) -> A:
    """Runs the rule to its end, with ``answer`` answering its questions. Returns the rule's result."""
    while True:
        try:
            asked = next(rule)
        except StopIteration as end:
            result: A = end.value
            return result
        answer(asked)
