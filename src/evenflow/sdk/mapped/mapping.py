"""Mapped tasks: one task with many instances, one for each combination of its inputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from evenflow.core import model
from evenflow.errors import BadMapping
from evenflow.sdk import scope
from evenflow.sdk.mapped.expansion import ExpandedInputs
from evenflow.sdk.mapped.sequences import Results
from evenflow.sdk.nodes import AnyDag, GroupNode
from evenflow.sdk.task import Task
from evenflow.sdk.xcomarg import RETURN_VALUE, XComArg


class MappedOperator(Task):
    """A task whose instances ``build`` makes at run time from ``shared`` arguments and one element of each of ``inputs``; with
    ``unpack`` from the elements of the only input, which are dicts of arguments.
    """

    def __init__(
        self,
        *,
        task_id: str,
        operator: str,
        dag: AnyDag | None,
        group: GroupNode | None,
        options: Mapping[str, Any],
        shared: Mapping[str, Any],
        inputs: Mapping[str, Any],
        build: Callable[[Mapping[str, Any]], Task],
        unpack: bool = False,
        template_ext: Sequence[str] = (),
        kind: type[Task],
        is_async: bool = False,
    ) -> None:
        super().__init__(task_id=task_id, operator=operator, dag=dag, group=group, options=options)
        around = self.mapped_group
        if around is not None:
            raise BadMapping(
                f"{self.qualified_name} is inside the mapped group {around.group_id!r} and cannot be mapped itself: it already has "
                "an instance for each index of the group. Map over combinations in the group's expand(), or move the task outside."
            )
        self.expansion = ExpandedInputs(self.qualified_name, inputs, unpack=unpack, taken=shared)
        self.shared, self.template_ext = shared, template_ext
        self._kind, self._is_async = kind, is_async
        self._build = build
        self._try_build()
        self.join_dag(dict(shared), self.inputs)

    @property
    def is_mapped(self) -> bool:
        return True

    def has_attribute(self, name: str) -> bool:
        """Only a task's own attributes can be assigned, because each instance makes its operator anew."""
        return hasattr(Task, name)

    @property
    def operator_class(self) -> type[Task]:
        return self._kind

    @property
    def may_defer(self) -> bool:
        return bool(self.shared.get("deferrable"))

    def runs_async(self) -> bool:
        return self._is_async

    def templates(self) -> tuple[Any, tuple[str, ...]]:
        return (self.shared, self.inputs), tuple(self.template_ext)

    def templates_by_field(self) -> Iterable[tuple[str, Any]]:
        """Yields the operator's arguments that are named like a template field. Those of a function reach its fields in another
        way.
        """
        return [(name, value) for name, value in {**self.shared, **self.inputs}.items() if name in self._kind.template_fields]

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs by argument."""
        return self.expansion.inputs

    def to_mapping(self, index_of: Mapping[str, int]) -> model.Mapping:
        mapping = self.expansion.to_mapping(index_of)
        return mapping if self.followed is None else dataclasses.replace(mapping, kind="each")

    @property
    def followed(self) -> Task | None:
        """The mapped task that it follows index by index: it maps over the plain result of that task, and waits for nothing
        else.
        """
        (value, *others) = self.inputs.values()
        if others or self.expansion.unpack or not isinstance(value, XComArg) or value.path or value.key != RETURN_VALUE:
            return None
        source = value.task
        if not isinstance(source, MappedOperator) or list(self.upstream_tasks) != [source.task_id]:
            return None
        return None if any(self._is_reached(down, source) for _, down in self.dag.group_edges) else source

    def _is_reached(self, end: Any, source: Task) -> bool:
        """Returns whether an edge to this end, the task or a group, makes the task wait for more than ``source``."""
        if end is self:
            return True
        return isinstance(end, GroupNode) and self in end.tasks and source not in end.tasks

    def elements(self, map_index: int, map_length: int | None, results: Results) -> dict[str, Any]:
        """Returns the arguments of this instance. Raises :class:`XComError` when the inputs have changed since it was expanded."""
        if self.followed is not None:
            return {name: results.of_index(value, map_index) for name, value in self.inputs.items()}
        return self.expansion.arguments(map_index, map_length, results)

    def make_instance(self, arguments: Mapping[str, Any]) -> Task:
        with scope.detached():
            operator = self._build(arguments)
        operator.task_id, operator.task_settings = self.task_id, self.task_settings
        operator.dag, operator.task_group = self.dag, self.task_group
        return operator

    def _try_build(self) -> None:
        """Makes one instance, so that a wrong one shows now, not when the task runs."""
        first = self.expansion.example()
        if first is not None:
            self.make_instance(first)
