"""References to values that exist only at run time: what a task passes on to another while the DAG is being defined."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from evenflow.errors import BadArgument
from evenflow.sdk.edges import Dependency

if TYPE_CHECKING:
    from evenflow.sdk.task import Task

    # To a type checker a reference fits wherever the value itself would: ``transform(extract())`` is checked against the
    # names and the number of arguments, and ``extract() >> load()`` against this class.
    _Anything = Any
else:
    _Anything = object

RETURN_VALUE = "return_value"


class Reference(_Anything):  # type: ignore[misc]
    """Stands for a value that is known when the task runs."""


class XComArg(Dependency, Reference):
    """The result of a task, or what it pushed under ``key``. ``arg["name"]`` is an item of that value.

    Of a mapped task it is the list of the values of all instances that pushed one, in map order, and ``arg["name"]`` the list of
    their items.
    """

    def __init__(self, task: Task, key: str = RETURN_VALUE, path: tuple[str | int, ...] = ()) -> None:
        self.task = task
        self.dag = task.dag
        self.key = key
        self.path = path

    @property
    def operator(self) -> Task:
        """The task that makes the value."""
        return self.task

    def endpoint(self) -> Dependency:
        return self.task

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


def references(value: Any) -> Iterator[Reference]:
    """All references in ``value``, which may be nested in lists, tuples and dicts."""
    if isinstance(value, Reference):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from references(item)


def resolve(value: Any, pull: Callable[[Reference], Any]) -> Any:
    """``value`` with every reference replaced by what ``pull`` says it is; the very same object when it has none."""
    if isinstance(value, Reference):
        return pull(value)
    if next(references(value), None) is None:
        return value
    if isinstance(value, dict):
        return {key: resolve(item, pull) for key, item in value.items()}
    items = [resolve(item, pull) for item in value]
    if isinstance(value, list):
        return items
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
