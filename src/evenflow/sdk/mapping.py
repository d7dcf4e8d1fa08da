"""Mapped tasks: one task, many instances, one for each combination of what it is expanded over."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evenflow.core import model
from evenflow.errors import BadMapping, XComError
from evenflow.sdk import scope
from evenflow.sdk.limits import MAX_EXPANSION
from evenflow.sdk.task import Task
from evenflow.sdk.xcomarg import RETURN_VALUE, XComArg

if TYPE_CHECKING:
    from evenflow.sdk.dag import DAG
    from evenflow.sdk.operators import BaseOperator
    from evenflow.sdk.taskgroup import TaskGroup


class MappedOperator(Task):
    """A task whose instances are made at run time by ``build``, from ``shared`` arguments and from the element of each of
    ``inputs``.
    """

    is_mapped = True

    def __init__(
        self,
        *,
        task_id: str,
        operator: str,
        dag: DAG | None,
        group: TaskGroup | None,
        options: Mapping[str, Any],
        shared: Mapping[str, Any],
        inputs: Mapping[str, Any],
        build: Callable[[Mapping[str, Any]], BaseOperator],
    ) -> None:
        super().__init__(task_id=task_id, operator=operator, dag=dag, group=group, options=options)
        self.inputs = {name: self._checked_input(name, value) for name, value in inputs.items()}
        self._check_size()
        self._build = build
        self._try_build()
        self.join_dag(dict(shared), self.inputs)

    def to_mapping(self, index_of: Mapping[str, int]) -> model.Mapping:
        return model.Mapping(inputs=tuple(self._spec_of(name, value, index_of) for name, value in self.inputs.items()))

    def _spec_of(self, name: str, value: Any, index_of: Mapping[str, int]) -> model.MapInput:
        if isinstance(value, XComArg):
            return model.MapInput(name=name, task=index_of[value.task.task_id], key=source_key(value))
        return model.MapInput(name=name, length=len(value))

    def elements(self, map_index: int, map_length: int | None, pull: Callable[[XComArg], Any]) -> dict[str, Any]:
        """What each input has for this instance. Raises :class:`XComError` when the inputs have changed since it was expanded."""
        values = {name: self._sequence(name, value, pull) for name, value in self.inputs.items()}
        lengths = [len(value) for value in values.values()]
        total = math.prod(lengths)
        if map_index >= total or (map_length is not None and map_length != total):
            expanded = map_length if map_length is not None else f"at least {map_index + 1}"
            raise XComError(
                f"Task {self.task_id!r} was expanded to {expanded} instances, but what it maps over now makes {total}. A list in a "
                "DAG file "
                "must be the same each time the file is loaded: no clock, no directory listing. Make such a list in a task."
            )
        return {name: value[i] for (name, value), i in zip(values.items(), indexes(map_index, lengths), strict=True)}

    def _sequence(self, name: str, value: Any, pull: Callable[[XComArg], Any]) -> Sequence[Any]:
        if isinstance(value, XComArg):
            value = pull(value)
        if isinstance(value, dict):
            return sorted(value.items()) if all(isinstance(key, str) for key in value) else list(value.items())
        if isinstance(value, (list, tuple)):
            return value
        raise XComError(
            f"Task {self.task_id!r} maps {name!r} over {value!r:.80}, of type {type(value).__name__}: only lists and dicts can be."
        )

    def make_instance(self, arguments: Mapping[str, Any]) -> BaseOperator:
        with scope.detached():
            operator = self._build(arguments)
        operator.task_id, operator.task_settings = self.task_id, self.task_settings
        operator.dag, operator.task_group = self.dag, self.task_group
        return operator

    def _try_build(self) -> None:
        """An instance that cannot be made shows now, not when the task runs."""
        if all(isinstance(value, XComArg) or value for value in self.inputs.values()):
            self.make_instance({name: value if isinstance(value, XComArg) else value[0] for name, value in self.inputs.items()})

    def _checked_input(self, name: str, value: Any) -> Any:
        if isinstance(value, XComArg):
            self._note_item(value)
            return value
        if isinstance(value, dict):
            return list(value.items())
        if isinstance(value, (list, tuple, range)):
            return list(value)
        cure = (
            f".expand({name}=list(...))"
            if hasattr(value, "__iter__") and not isinstance(value, (str, bytes))
            else f".partial({name}=...)"
        )
        raise BadMapping(
            f"{self.qualified_name}: expand() needs a list, a dict or the result of a task for {name!r}, not {value!r:.80} of type "
            f"{type(value).__name__}. Type: {cure}"
        )

    def _note_item(self, value: XComArg) -> None:
        """A mapping over an item of a result needs that item as an XCom of its own, because the scheduler must know its length."""
        if not value.path or value.task.is_mapped:
            return
        if len(value.path) > 1 or not isinstance(value.path[0], str) or value.key != RETURN_VALUE:
            raise BadMapping(
                f"{self.qualified_name}: expand() can map over a result or over one named item of it, not over {value!r}. "
                "Make a task that returns just that list."
            )
        value.task.mapped_items.add(value.path[0])

    def _check_size(self) -> None:
        if not self.inputs:
            raise BadMapping(
                f"{self.qualified_name}: expand() needs at least one argument to map over, e.g. .expand(name=[1, 2, 3])"
            )
        total = math.prod(len(value) for value in self.inputs.values() if not isinstance(value, XComArg))
        if total > MAX_EXPANSION:
            raise BadMapping(
                f"{self.qualified_name}: expand() makes {total:,} instances, at most {MAX_EXPANSION:,} are allowed. Map over "
                "batches of the "
                "elements."
            )


def item_key(item: str) -> str:
    """The XCom key of an item of a result that other tasks map over."""
    return f"{RETURN_VALUE}.{item}"


def source_key(value: XComArg) -> str:
    """The XCom key whose length decides how many instances a mapping over ``value`` has."""
    return item_key(str(value.path[0])) if value.path and not value.task.is_mapped else value.key


def indexes(map_index: int, lengths: Sequence[int]) -> list[int]:
    """The index into each input, the last of them varying fastest."""
    result = []
    for length in reversed(lengths):
        map_index, index = divmod(map_index, length)
        result.append(index)
    return result[::-1]
