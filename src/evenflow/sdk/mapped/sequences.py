"""Inputs of expanded tasks: lists, results of tasks, and combinations of these by ``map``, ``zip`` and ``concat``.

The scheduler learns only their lengths (:func:`length_of`). Elements are made where a task runs (:class:`Elements`), and only those
that it needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from evenflow.core.mapping import combined_length
from evenflow.core.model import MapInput
from evenflow.errors import XComError
from evenflow.sdk.references import Reference
from evenflow.sdk.xcomarg import Combinable, ConcatResult, MapResult, XComArg, ZipResult


def length_of(name: str, value: Any, index_of: Mapping[str, int]) -> MapInput:
    """Returns how the scheduler learns the length of ``value``, which is a list or a result."""
    match value:
        case MapResult():
            return length_of(name, value.source, index_of)
        case ZipResult() | ConcatResult():
            return MapInput(name=name, combine=value.combine, parts=tuple(length_of("", part, index_of) for part in value.parts))
        case Combinable():
            return value.to_input(name, index_of)
        case _:
            return MapInput(name=name, length=len(value))


class Results(Protocol):
    """What a running task can ask about the results of others."""

    def of(self, reference: Reference) -> Any:
        """Returns the whole value."""
        ...

    def of_index(self, arg: XComArg, map_index: int) -> Any:
        """Returns the value of the mapped task's instance with this index, or None without one."""
        ...

    def length(self, arg: XComArg) -> int:
        """Returns how many instances of the mapped task pushed it."""
        ...

    def element(self, arg: XComArg, index: int) -> Any:
        """Returns the value of the ``index``-th of those."""
        ...


class Elements:
    """The elements of the sequences over which ``task_name`` maps."""

    def __init__(self, task_name: str, results: Results) -> None:
        self._task_name, self._results = task_name, results

    def length(self, value: Any) -> int:
        match value:
            case MapResult():
                return self.length(value.source)
            case ZipResult() | ConcatResult():
                return combined_length(value.combine, [self.length(part) for part in value.parts])
            case Combinable() if value.has_instances():
                return self._results.length(value)
            case _:
                return len(self._sequence(value))

    def at(self, value: Any, index: int) -> Any:
        """Returns one element. ``index`` is below the length."""
        match value:
            case MapResult():
                return value.function(self.at(value.source, index))
            case ZipResult():
                return tuple(value.fillvalue if index >= self.length(part) else self.at(part, index) for part in value.parts)
            case ConcatResult():
                for part in value.parts:
                    if index < (length := self.length(part)):
                        return self.at(part, index)
                    index -= length
                raise IndexError(index)
            case Combinable() if value.has_instances():
                return self._results.element(value, index)
            case _:
                return self._sequence(value)[index]

    def all(self, value: Combinable) -> list[Any]:
        return [self.at(value, index) for index in range(self.length(value))]

    def _sequence(self, value: Any) -> Sequence[Any]:
        if isinstance(value, Reference):
            value = self._results.of(value)
        if isinstance(value, dict):
            return sorted(value.items()) if all(isinstance(key, str) for key in value) else list(value.items())
        if isinstance(value, (list, tuple)):
            return value
        raise XComError(f"{self._task_name} maps over {value!r:.80}, of type {type(value).__name__}: only lists and dicts can be.")
