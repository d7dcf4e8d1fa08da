"""``depends_on_past``: a ready task waits until its instances in the previous run have ended well.

A gate counts how many tasks of that run are missing: the task itself, and with ``wait_for_downstream`` those directly downstream of
it. Trigger rules do not know of gates: they decide first, and a gate then holds what they let start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evenflow.core.flow.state import Flow, T
from evenflow.core.graph import Graph
from evenflow.core.states import TaskState

ENDED_WELL = (TaskState.SUCCESS, TaskState.SKIPPED)


def awaited(graph: Graph) -> Iterator[tuple[int, str]]:
    """Yields each task that waits (task index), with the task of the previous run for which it waits (task id, because that run may
    have another version).
    """
    for index in graph.past:
        task = graph.task(index)
        yield index, task.task_id
        if task.wait_for_downstream:
            yield from ((index, graph.task(after).task_id) for after in graph.downstream[index])


def let_through(flow: Flow[T], items: Iterable[T]) -> None:
    """Admits instances whose gates have opened. The gates are checked again when the instances begin, because they may have
    changed.
    """
    flow.gated += [item for item in items if item.state is TaskState.NONE]
