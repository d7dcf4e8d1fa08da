"""The try behind a client of the Task Execution API, and its connection to Evenflow's own questions."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from evenflow.sdk.trying.runner import Channel, TryContext

_IDS = uuid.UUID("8c1f0a52-9d0c-4a54-8a05-1f4a3a5d7f0e")  # namespace for names of tries as UUIDs, which the client needs


@dataclass(frozen=True)
class AirflowTry:
    """``index_of`` has the task index of each task of its DAG, ``mapped`` the ids of those with instances."""

    context: TryContext
    channel: Channel
    index_of: Mapping[str, int]
    mapped: frozenset[str] = field(default_factory=frozenset)
    reschedules: bool = False  # its task is a sensor that gives its slot back between two looks

    @cached_property
    def id(self) -> uuid.UUID:
        return uuid.uuid5(_IDS, str(self.context.epoch))

    def ask(self, question: str, **arguments: Any) -> dict[str, Any]:
        """Asks one of :data:`evenflow.wire.questions.QUESTIONS`. Raises :class:`ApiRefused`."""
        return self.channel.ask(question, arguments)

    def is_own(self, dag_id: str, run_id: str, task_id: str) -> bool:
        return (dag_id, run_id, task_id) == (self.context.dag_id, self.context.run_id, self.context.task_id)
