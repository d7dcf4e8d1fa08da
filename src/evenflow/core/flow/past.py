"""``depends_on_past``: a task that is ready waits until its instances in the previous run have ended well.

A gate says how many tasks of that run are missing: the task itself, and with ``wait_for_downstream`` those directly downstream of
it. Trigger rules know nothing of that: they decide first, and what may start then is held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evenflow.core.flow.state import Flow, T
from evenflow.core.graph import Graph
from evenflow.core.states import TaskState

ENDED_WELL = (TaskState.SUCCESS, TaskState.SKIPPED)


def awaited(graph: Graph) -> Iterator[tuple[int, str]]:
    """Which tasks (task index) wait for which of the previous run (task id), whose version may be another."""
    for index in graph.past:
        task = graph.task(index)
        yield index, task.task_id
        if task.wait_for_downstream:
            yield from ((index, graph.task(after).task_id) for after in graph.downstream[index])


def let_through(flow: Flow[T], items: Iterable[T]) -> None:
    """The gates of these instances have opened. Whether that is so is asked again when they begin: it may have changed since."""
    flow.gated += [item for item in items if item.state is TaskState.NONE]
