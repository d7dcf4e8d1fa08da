"""Task groups: a prefix for ids, defaults for tasks, and one end of an edge for many tasks."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Never, NoReturn, ParamSpec, TypeVar, cast, overload

from evenflow.errors import BadArgument, BadMapping, BadSetting, WrongDag
from evenflow.sdk import scope
from evenflow.sdk.assignments import LOOKS, is_own_affair, refuse, refuse_fixed
from evenflow.sdk.edges import connect
from evenflow.sdk.mapped.expansion import ExpandedInputs
from evenflow.sdk.mapped.partials import UNPACKED, check_named
from evenflow.sdk.nodes import AnyDag, GroupNode
from evenflow.sdk.options import check_options
from evenflow.sdk.readers import check_id
from evenflow.sdk.references import Reference, references
from evenflow.sdk.signature import Signature
from evenflow.sdk.task import Task

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


P = ParamSpec("P")
R = TypeVar("R")


class TaskGroup(GroupNode):
    """Tasks defined inside ``with TaskGroup("load"):`` have ids such as ``load.copy``.

    An edge from a group begins at its leaves, the tasks for which no task of the group waits; an edge to a group ends at its roots.
    Both are found when the DAG is complete, so tasks may still be added after the edge.
    """

    tasks: list[Task]

    def __init__(
        self,
        group_id: str,
        *,
        prefix_group_id: bool = True,
        tooltip: str = "",
        default_args: dict[str, Any] | None = None,
        parent_group: TaskGroup | None = None,
        dag: AnyDag | None = None,
        add_suffix_on_collision: bool = False,
        expansion: ExpandedInputs | None = None,
    ) -> None:
        dag = dag or (parent_group.dag if parent_group else scope.current_dag())
        if dag is None:
            raise WrongDag(
                f"Task group {group_id!r} belongs to no DAG. Define it inside `with DAG(...):` or a function with @dag, or give it "
                "dag=."
            )
        check_id("group", group_id, f"DAG {dag.dag_id!r}")
        self.dag = dag
        self.parent = parent_group or scope.current_group(dag)
        full_id = self.parent.child_id(group_id) if self.parent else group_id
        self.group_id = dag.free_id(full_id) if add_suffix_on_collision else full_id
        self.prefix_group_id = prefix_group_id
        self.tooltip = tooltip
        self.default_args = {**(self.parent.default_args if self.parent else {}), **(default_args or {})}
        self.expansion = expansion  # the inputs of a mapped group
        self.is_mapped = expansion is not None
        self._refuse_nesting()
        self.tasks = []
        self.depth = self.parent.depth + 1 if self.parent else 1
        dag.add_group(self)
        for source in references_of(expansion):
            connect(source, self)

    if not TYPE_CHECKING:  # or a type checker would accept any attribute

        def __setattr__(self, name: str, value: Any) -> None:
            """Raises :class:`BadSetting` for an assignment without effect."""
            if not is_own_affair(self):
                self._check_assigned(name, value)
            object.__setattr__(self, name, value)

    def _check_assigned(self, name: str, value: Any) -> None:
        where = f"DAG {self.dag.dag_id!r}, task group {self.group_id!r}"
        if name == "tooltip":
            if not isinstance(value, str):
                raise BadSetting(f"{where}: tooltip must be a string, not {value!r}.")
        elif name == "default_args" and not self.tasks:
            check_options(value, f"{where}, default_args")
        elif hasattr(self, name):
            refuse_fixed(where, name, value)
        elif name not in LOOKS:
            refuse(where, name, ("tooltip", "default_args"))

    def __iter__(self) -> Iterator[Task]:
        """Yields its tasks, and those of the groups inside."""
        return iter(self.tasks)

    @property
    def children(self) -> dict[str, Task | TaskGroup]:
        """The tasks and groups directly inside, by id."""
        tasks = {task.task_id: task for task in self.tasks if task.task_group is self}
        return {**tasks, **{name: group for name, group in self.dag.groups.items() if group.parent is self}}

    def _refuse_nesting(self) -> None:
        outer = next((group for group in self.around() if group.is_mapped), None)
        if self.is_mapped and outer is not None:
            raise BadMapping(
                f"Mapped group {self.group_id!r} is inside the mapped group {outer.group_id!r}: mapped groups cannot be nested. "
                "Expand one group over the combinations: outer.expand(a=..., b=...)."
            )

    def __enter__(self) -> Self:
        scope.enter_dag(self.dag)
        scope.enter_group(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        scope.leave_group()
        scope.leave_dag()


class GroupFunction(Generic[P, R]):
    """A function with ``@task_group``: each call makes a group of the tasks that its body defines."""

    def __init__(self, function: Callable[P, R], options: dict[str, Any], shared: dict[str, Any] | None = None) -> None:
        self.function = function
        self.options = options
        self.shared = shared or {}
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Returns what the function returns or, if that is None, the group."""
        return self._make(None, lambda group: self.function(*args, **{**self.shared, **kwargs}))

    def override(self, **options: Any) -> GroupFunction[P, R]:
        """Returns the same function with other options, e.g. ``group_id``."""
        return GroupFunction(self.function, {**self.options, **options}, self.shared)

    def partial(self, **arguments: Any) -> GroupFunction[P, R]:
        """Returns the function with arguments that are the same for every index; continue with ``.expand(...)``."""
        return GroupFunction(self.function, self.options, {**self.shared, **arguments})

    def expand(self, *unnamed: Never, **inputs: Any) -> R:
        """Makes a mapped group: its tasks have one instance for each combination of the ``inputs``, of which the last varies
        fastest, and each index proceeds on its own. Inside the function an argument of ``inputs`` stands for its element.
        """
        check_named(self._owner, unnamed, inputs, self.shared)
        return self._expanded(ExpandedInputs(self._owner, inputs, unpack=False, taken=self.shared), list(inputs))

    def expand_kwargs(self, kwargs: Any) -> R:
        """Works like :meth:`expand`, over a list of dicts of arguments, or a result with one: an index for each dict."""
        names = [name for name in inspect.signature(self.function).parameters if name not in self.shared]
        return self._expanded(ExpandedInputs(self._owner, {UNPACKED: kwargs}, unpack=True, taken=self.shared), names)

    def _expanded(self, expansion: ExpandedInputs, names: list[str]) -> R:
        Signature.of(self.function).check((), {**self.shared, **dict.fromkeys(names)}, self._owner)
        arguments = {name: GroupArgument(expansion, name) for name in names}
        return self._make(expansion, lambda group: self.function(**{**self.shared, **arguments}))  # type: ignore[call-arg]

    @property
    def _owner(self) -> str:
        return f"Task group {self._group_id!r}"

    @property
    def _group_id(self) -> str:
        return str(self.options.get("group_id") or getattr(self.function, "__name__", "group"))

    def _make(self, expansion: ExpandedInputs | None, define: Callable[[TaskGroup], R]) -> R:
        options = {name: value for name, value in self.options.items() if name != "group_id"}
        options.setdefault("tooltip", (self.function.__doc__ or "").strip())
        with TaskGroup(self._group_id, add_suffix_on_collision=True, expansion=expansion, **options) as group:
            result = define(group)
        return cast(R, group if result is None else result)


class GroupArgument(Reference):
    """An argument of a mapped group's function: another element of the group's inputs in each index."""

    def __init__(self, expansion: ExpandedInputs, name: str) -> None:
        self.expansion, self.name = expansion, name

    def __iter__(self) -> NoReturn:
        raise BadMapping(f"{self!r} cannot be looped over or unpacked here: its value is known only when the DAG runs.")

    def __bool__(self) -> NoReturn:
        raise BadMapping(f"{self!r} cannot be tested here: its value is known only when the DAG runs. Test it in a task.")

    def __repr__(self) -> str:
        return f"<argument {self.name!r} of {self.expansion.owner[0].lower()}{self.expansion.owner[1:]}>"


def references_of(expansion: ExpandedInputs | None) -> Iterator[Any]:
    """Yields the results over which a group is expanded, also inside a literal."""
    for reference in references(expansion.inputs) if expansion is not None else ():
        yield from reference.sources()


@overload
def task_group(function: Callable[P, None]) -> GroupFunction[P, TaskGroup]: ...
@overload
def task_group(function: Callable[P, R]) -> GroupFunction[P, R]: ...
@overload
def task_group(
    *,
    group_id: str | None = None,
    prefix_group_id: bool = True,
    tooltip: str = "",
    default_args: dict[str, Any] | None = None,
    parent_group: TaskGroup | None = None,
    dag: AnyDag | None = None,
) -> Callable[[Callable[P, R]], GroupFunction[P, R]]: ...
def task_group(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Makes a function define a task group: ``@task_group`` or ``@task_group(group_id=..., tooltip=...)``."""
    if function is not None:
        if not callable(function):
            raise BadArgument(
                f"@task_group decorates a function, not {function!r}. For an id, type: @task_group(group_id={function!r})"
            )
        return GroupFunction(function, options)
    return lambda decorated: GroupFunction(decorated, options)
