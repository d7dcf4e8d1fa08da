"""Into how many instances a task, or a mapped group, expands in a run in memory: as the scheduler expands."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evenflow.core.graph import Span
from evenflow.core.mapping import Source, product_length, sources
from evenflow.core.model import UNMAPPED, DagSpec
from evenflow.core.states import TaskState
from evenflow.sdk import xcom


@dataclass(frozen=True, slots=True)
class Whole:
    """A task, or a whole mapped group, that has no instances and ends like this."""

    state: TaskState
    reason: str | None = None


NOTHING = Whole(TaskState.SKIPPED, "There was nothing to map over.")


class Expansions:
    """``xcoms`` are the values by task id, key and map index; they grow while the run goes on."""

    def __init__(self, spec: DagSpec, mapped: tuple[bool, ...], xcoms: Mapping[tuple[str, str, int], bytes]) -> None:
        self._spec, self._mapped, self._xcoms = spec, mapped, xcoms

    def of(self, span: Span, ended: Iterable[TaskState]) -> int | Whole:
        """``ended`` says how what it maps over has ended."""
        lengths = {source: self._length(source) for source in sources(span.mapping.inputs)}
        length = product_length(span.mapping.inputs, lengths)
        if length == 0:
            return NOTHING
        if length is None:
            states = set(ended)
            if states & {TaskState.FAILED, TaskState.UPSTREAM_FAILED}:
                return Whole(TaskState.UPSTREAM_FAILED)
            if TaskState.SKIPPED in states:
                return Whole(TaskState.SKIPPED)
            names = ", ".join(dict.fromkeys(self._spec.tasks[task].task_id for task, _ in lengths))
            return Whole(TaskState.FAILED, f"It cannot be mapped: {names} returned no list or dict.")
        if length > self._spec.max_map_length:
            reason = (
                f"It would have {length:,} instances, above the limit of {self._spec.max_map_length:,} (max_map_length of the DAG)."
            )
            return Whole(TaskState.FAILED, reason)
        return length

    def _length(self, source: Source) -> int | None:
        task_index, key = source
        task_id = self._spec.tasks[task_index].task_id
        if self._mapped[task_index]:
            return sum(at[:2] == (task_id, key) for at in self._xcoms)
        stored = self._xcoms.get((task_id, key, UNMAPPED))
        return xcom.mapped_length(json.loads(stored)) if stored is not None else None
