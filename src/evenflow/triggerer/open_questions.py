"""How much of a host's questions a triggerer keeps: those without an answer, and answers that the host has not taken."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from evenflow.triggerer import limits


class OpenQuestions:
    """Of one host. ``taken``: how many of the bytes that were sent to it have left."""

    def __init__(self, taken: Callable[[], int]) -> None:
        self._taken = taken
        self._asked = 0  # bytes of questions without an answer
        self._answered: deque[tuple[int, int]] = deque()  # answers that may not be taken: where each ends, its bytes
        self._kept = 0  # bytes of those

    def ask(self, size: int) -> None:
        """Raises :class:`ValueError` when it is one too many."""
        taken = self._taken()
        while self._answered and self._answered[0][0] <= taken:
            self._kept -= self._answered.popleft()[1]
        self._asked += size + limits.QUESTION
        if self._asked + self._kept > limits.OPEN_QUESTIONS:
            raise ValueError(f"questions of more than {limits.OPEN_QUESTIONS // 2**20} MiB at once")

    def answer(self, size: int, answer: int, queued: int) -> None:
        """Of a question of so many bytes; its answer is the last of ``queued`` bytes that were to be sent."""
        self._asked -= size + limits.QUESTION
        self._answered.append((queued, answer + limits.QUESTION))
        self._kept += answer + limits.QUESTION
