"""Sequences that exist only at run time: results of tasks mapped by functions, zipped and concatenated, to be expanded over.

The scheduler learns only how long they will be (:func:`length_of`); elements are made where a task runs (:class:`Elements`), and
only those that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from evenflow.core.mapping import combined_length
from evenflow.core.model import MapInput
from evenflow.errors import BadMapping, XComError
from evenflow.sdk.references import Reference

if TYPE_CHECKING:
    from evenflow.sdk.xcomarg import XComArg

_MISSING: Any = object()


class Combinable(Reference):
    """What ``.map()``, ``.zip()`` and ``.concat()`` can be called on. They cost nothing until a task runs."""

    def has_instances(self) -> bool:
        """Whether it is the list of what the instances of a mapped task made."""
        return False

    def to_input(self, name: str, index_of: Mapping[str, int]) -> MapInput:
        """How the scheduler will know the length of a result of a task; ``index_of`` gives the task index of a task id."""
        raise NotImplementedError

    def map(self, function: Callable[[Any], Any]) -> MapResult:
        """Each element as ``function`` returns it. Where it raises ``TaskSkipped``, the instance of that element is skipped."""
        if not callable(function) or hasattr(function, "override"):
            raise BadMapping(f"{self!r}.map() needs a plain function, not {function!r}. To run a task over it, .expand() the task.")
        return MapResult(self, function)

    def zip(self, *others: Any, fillvalue: Any = _MISSING) -> ZipResult:
        """Tuples of elements, as many as the shortest has; with ``fillvalue`` for what is missing as many as the longest."""
        return ZipResult((self, *map(_checked_part, others)), fillvalue)

    def concat(self, *others: Any) -> ConcatResult:
        """The elements of one after the other."""
        return ConcatResult((self, *map(_checked_part, others)))


class MapResult(Combinable):
    def __init__(self, source: Combinable, function: Callable[[Any], Any]) -> None:
        self.source, self.function = source, function

    def sources(self) -> Iterator[XComArg]:
        return self.source.sources()

    def __repr__(self) -> str:
        return f"{self.source!r}.map({getattr(self.function, '__name__', '...')})"


class _Parts(Combinable):
    parts: tuple[Any, ...]

    def sources(self) -> Iterator[XComArg]:
        for part in self.parts:
            if isinstance(part, Reference):
                yield from part.sources()


class ZipResult(_Parts):
    def __init__(self, parts: tuple[Any, ...], fillvalue: Any) -> None:
        self.parts, self.fillvalue = parts, fillvalue
        self.combine = "zip" if fillvalue is _MISSING else "zip_longest"

    def __repr__(self) -> str:
        return f"{self.parts[0]!r}.zip({', '.join(map(repr, self.parts[1:]))})"


class ConcatResult(_Parts):
    combine = "concat"

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.parts = parts

    def __repr__(self) -> str:
        return f"{self.parts[0]!r}.concat({', '.join(map(repr, self.parts[1:]))})"


def _checked_part(part: Any) -> Any:
    if isinstance(part, Combinable):
        return part
    if isinstance(part, (list, tuple, range)):
        return list(part)
    raise BadMapping(f".zip() and .concat() take results of tasks and lists, not {part!r:.80} of type {type(part).__name__}.")


def length_of(name: str, value: Any, index_of: Mapping[str, int]) -> MapInput:
    """How the scheduler will know the length of ``value``, which is a list or a result."""
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
    """What a running task can ask of the results of others."""

    def of(self, reference: Reference) -> Any:
        """The whole value."""
        ...

    def of_index(self, arg: XComArg, map_index: int) -> Any:
        """What the instance of a mapped task with this index has; None when that is nothing."""
        ...

    def length(self, arg: XComArg) -> int:
        """How many instances of the mapped task pushed it."""
        ...

    def element(self, arg: XComArg, index: int) -> Any:
        """The value of the ``index``-th of those."""
        ...


class Elements:
    """The sequences that ``task_name`` maps over, by element."""

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
        """One element. ``index`` is below the length."""
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
