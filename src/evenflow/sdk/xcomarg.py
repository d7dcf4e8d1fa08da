"""References to values that exist only at run time: what a task passes on to another while the DAG is being defined, unchanged or
mapped by a function, zipped and concatenated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from evenflow.core.model import MapInput
from evenflow.errors import BadArgument, BadMapping
from evenflow.sdk.assignments import is_own_affair, refuse
from evenflow.sdk.nodes import TaskNode
from evenflow.sdk.references import Reference
from evenflow.sdk.setup_teardown import Markable

RETURN_VALUE = "return_value"

_MISSING: Any = object()


class Combinable(Reference):
    """The base of references with ``.map()``, ``.zip()`` and ``.concat()``. These cost nothing until a task runs."""

    def sources(self) -> Iterator[XComArg]:
        raise NotImplementedError

    def has_instances(self) -> bool:
        """Whether it is the list of results of a mapped task's instances."""
        return False

    def to_input(self, name: str, index_of: Mapping[str, int]) -> MapInput:
        """Returns how the scheduler learns the length of a task's result; ``index_of`` maps a task id to its task index."""
        raise NotImplementedError

    def map(self, function: Callable[[Any], Any]) -> MapResult:
        """Maps each element by ``function``. If it raises ``TaskSkipped``, the instance of that element is skipped."""
        if not callable(function) or hasattr(function, "override"):
            raise BadMapping(f"{self!r}.map() needs a plain function, not {function!r}. To run a task over it, .expand() the task.")
        return MapResult(self, function)

    def zip(self, *others: Any, fillvalue: Any = _MISSING) -> ZipResult:
        """Makes tuples of elements, as many as the shortest has; with ``fillvalue`` for missing ones, as many as the longest."""
        return ZipResult((self, *map(_checked_part, others)), fillvalue)

    def concat(self, *others: Any) -> ConcatResult:
        """Joins the elements of one after the other."""
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
            if isinstance(part, Combinable):
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


class XComArg(Markable, Combinable):
    """The result of a task, or what it pushed under ``key``. ``arg["name"]`` is an item of that value.

    For a mapped task it is the list of values of all instances that pushed one, in map order, and ``arg["name"]`` the list of their
    items.
    """

    def __init__(self, task: TaskNode, key: str = RETURN_VALUE, path: tuple[str | int, ...] = ()) -> None:
        self.task = task
        self.dag = task.dag
        self.key = key
        self.path = path

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None:
            if not is_own_affair(self):
                refuse(repr(self), name, (), f"It belongs to the task: say .operator.{name} = ..., or @task({name}=...).")
            object.__setattr__(self, name, value)

    @property
    def operator(self) -> TaskNode:
        """The task that makes the value."""
        return self.task

    def sources(self) -> Iterator[XComArg]:
        yield self

    def endpoint(self) -> TaskNode:
        return self.task

    def has_instances(self) -> bool:
        return self.task.is_mapped

    def to_input(self, name: str, index_of: Mapping[str, int]) -> MapInput:
        return MapInput(name=name, task=index_of[self.task.task_id], key=source_key(self))

    def __getitem__(self, item: str | int) -> XComArg:
        if not isinstance(item, (str, int)):
            raise BadArgument(
                f"{self!r} can be indexed with a string or an integer, not with {item!r}. Do it in the task that uses it."
            )
        return XComArg(self.task, self.key, (*self.path, item))

    def __iter__(self) -> NoReturn:
        raise BadArgument(
            f"{self!r} cannot be looped over or unpacked here: its value is known only when the DAG runs. "
            "Take items with result[0] or result['name'], or make one task instance for each element with .expand()."
        )

    def __bool__(self) -> NoReturn:
        raise BadArgument(
            f"{self!r} cannot be tested here: its value is known only when the DAG runs. Test it in the task that uses it."
        )

    def __len__(self) -> NoReturn:
        raise BadArgument(f"{self!r} has no length here: its value is known only when the DAG runs.")

    def __repr__(self) -> str:
        items = "".join(f"[{item!r}]" for item in self.path)
        key = "" if self.key == RETURN_VALUE else f", key {self.key!r}"
        return f"<result of task {self.task.task_id!r}{key}>{items}"


def item_key(item: str) -> str:
    """Returns the XCom key of an item of a result over which other tasks map."""
    return f"{RETURN_VALUE}.{item}"


def source_key(value: XComArg) -> str:
    """Returns the XCom key whose length decides how many instances a mapping over ``value`` has."""
    return item_key(str(value.path[0])) if value.path and not value.task.is_mapped else value.key
