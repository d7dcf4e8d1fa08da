"""The outside of a try, for tests of the runner."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from evenflow.sdk.trying.runner import TryContext

RUN_AFTER = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


class Recorder:
    """A channel that answers from ``stored`` and keeps what is pushed."""

    def __init__(self, stored: dict[tuple[str, str, int | None], Any] | None = None) -> None:
        self.stored = stored or {}
        self.other_run = ""  # the name of one that has values
        self.pushed: dict[str, Any] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, dict[str, Any]] = {}
        self.pulls: list[tuple[str, str, int | None]] = []
        self.reported: list[tuple[str, int, int, dict[str, Any]]] = []

    def xcom_pull(self, task_id: str, key: str, map_index: int | None, run_id: str | None = None) -> tuple[bool, Any]:
        if run_id is not None:
            return run_id == self.other_run, f"{task_id} of {run_id}"
        address = (task_id, key, map_index)
        self.pulls.append(address)
        return address in self.stored, self.stored.get(address)

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value

    def ask(self, question: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((question, arguments))
        answer: dict[str, Any] = self.answers.get(question, {})
        return answer

    def progress(self, label: str, done: int, total: int, detail: dict[str, Any]) -> None:
        self.reported.append((label, done, total, detail))


def context(task_id: str, **fields: Any) -> TryContext:
    return TryContext(**{"dag_id": "d", "run_id": "r", "task_id": task_id, "run_after": RUN_AFTER, **fields})
