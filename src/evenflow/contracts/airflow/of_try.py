"""The try behind a client of the Task Execution API, and its connection to Evenflow's own questions."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from evenflow.sdk.trying.runner import Channel, TryContext

_IDS = uuid.UUID("8c1f0a52-9d0c-4a54-8a05-1f4a3a5d7f0e")  # namespace for names of tries as UUIDs, which the client needs


def instance_id(epoch: int) -> uuid.UUID:
    """Returns the client's name of a try."""
    return uuid.uuid5(_IDS, str(epoch))


class Draft(Protocol):
    """What a try has said of its end before it ends. Values are JSON."""

    def skip(self, tasks: Iterable[int]) -> None:
        """Adds the task indexes of tasks that its branch has decided against."""
        ...

    def skipped(self) -> list[int]: ...

    def set_question(self, question: str) -> None:
        """Keeps what the task asks people, as JSON."""
        ...

    def question(self) -> str | None: ...

    def set_result(self, value: bytes | None, length: int | None = None) -> None:
        """``length`` says how many elements it has to map over, where the value does not show it."""
        ...

    def result(self) -> bytes | None:
        """Returns the result if it is to come with the ending; None if there is none, or if it is stored already."""
        ...

    def length(self) -> int | None:
        """Returns the length of :meth:`result`."""
        ...


class DraftHere:
    """A draft in memory, for a client in this process."""

    def __init__(self) -> None:
        self._skipped: list[int] = []
        self._question: str | None = None
        self._result: bytes | None = None
        self._length: int | None = None

    def skip(self, tasks: Iterable[int]) -> None:
        self._skipped.extend(tasks)

    def skipped(self) -> list[int]:
        return list(self._skipped)

    def set_question(self, question: str) -> None:
        self._question = question

    def question(self) -> str | None:
        return self._question

    def set_result(self, value: bytes | None, length: int | None = None) -> None:
        self._result, self._length = value, length

    def result(self) -> bytes | None:
        return self._result

    def length(self) -> int | None:
        return self._length


@dataclass(frozen=True)
class AirflowTry:
    """``index_of`` has the task index of each task of its DAG, ``mapped`` the ids of those with instances. ``on_worker``: this
    process is the try's own, so the connections and variables of its host are its, too.
    """

    context: TryContext
    channel: Channel
    index_of: Mapping[str, int]
    mapped: frozenset[str] = field(default_factory=frozenset)
    looks: int = 0  # how often its task was rescheduled, as far as its client needs to know
    on_worker: bool = True
    draft: Draft = field(default_factory=DraftHere)
    link_names: dict[str, str] = field(default_factory=dict)  # by the keys of XComs that are links for people
    beat: Callable[[], str | None] = lambda: None  # called for each heartbeat; returns why the try must end

    @cached_property
    def id(self) -> uuid.UUID:
        return instance_id(self.context.epoch)

    def ask(self, question: str, **arguments: Any) -> dict[str, Any]:
        """Asks one of :data:`evenflow.wire.questions.QUESTIONS`. Raises :class:`ApiRefused`."""
        return self.channel.ask(question, arguments)

    def is_own(self, dag_id: str, run_id: str, task_id: str) -> bool:
        return (dag_id, run_id, task_id) == (self.context.dag_id, self.context.run_id, self.context.task_id)
