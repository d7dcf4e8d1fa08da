"""References to values that exist only at run time: what a task passes on to another while the DAG is being defined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from evenflow.core.model import MapInput
from evenflow.errors import BadArgument
from evenflow.sdk.assignments import is_own_affair, refuse
from evenflow.sdk.edges import Dependency
from evenflow.sdk.sequences import Combinable

if TYPE_CHECKING:
    from types import TracebackType

    from evenflow.sdk.setup_teardown import SetupScope
    from evenflow.sdk.task import Task

RETURN_VALUE = "return_value"


class XComArg(Dependency, Combinable):
    """The result of a task, or what it pushed under ``key``. ``arg["name"]`` is an item of that value.

    Of a mapped task it is the list of the values of all instances that pushed one, in map order, and ``arg["name"]`` the list of
    their items.
    """

    def __init__(self, task: Task, key: str = RETURN_VALUE, path: tuple[str | int, ...] = ()) -> None:
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
    def operator(self) -> Task:
        """The task that makes the value."""
        return self.task

    def sources(self) -> Iterator[XComArg]:
        yield self

    def as_setup(self) -> XComArg:
        """Marks the task as a setup, see ``Task.as_setup``."""
        self.task.as_setup()
        return self

    def as_teardown(self, *, setups: Any = None, on_failure_fail_dagrun: bool | None = None) -> XComArg:
        """Marks the task as a teardown, see ``Task.as_teardown``."""
        self.task.as_teardown(setups=setups, on_failure_fail_dagrun=on_failure_fail_dagrun)
        return self

    def __enter__(self) -> SetupScope:
        return self.task.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.task.__exit__(kind, error, traceback)

    def endpoint(self) -> Dependency:
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
    """The XCom key of an item of a result that other tasks map over."""
    return f"{RETURN_VALUE}.{item}"


def source_key(value: XComArg) -> str:
    """The XCom key whose length decides how many instances a mapping over ``value`` has."""
    return item_key(str(value.path[0])) if value.path and not value.task.is_mapped else value.key
