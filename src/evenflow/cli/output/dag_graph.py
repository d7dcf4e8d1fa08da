"""The graph of a DAG as text: a tree for people, Mermaid and DOT for other tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenflow.contracts import rest

SEEN = " (see above)"


def tree_lines(tasks: Sequence[rest.dags.DagTask]) -> Iterator[str]:
    """Yields each task below its first shown upstream; later occurrences are only named, so the text is as long as the graph."""
    downstream = _downstream(tasks)
    mapped = {task.task_id for task in tasks if task.mapped}
    seen: set[str] = set()
    waiting = [("", "", task.task_id) for task in reversed(tasks) if not task.upstream]
    while waiting:
        indent, branch, task_id = waiting.pop()
        again = task_id in seen and bool(downstream[task_id])
        yield f"{indent}{branch}{task_id}{' []' if task_id in mapped else ''}{SEEN if again else ''}"
        if task_id not in seen:
            seen.add(task_id)
            below = indent + {"": "", "├── ": "│   ", "└── ": "    "}[branch]
            children = downstream[task_id]
            waiting += [(below, "└── " if child == children[-1] else "├── ", child) for child in reversed(children)]


def mermaid_lines(tasks: Sequence[rest.dags.DagTask]) -> Iterator[str]:
    numbers = {task.task_id: f"t{number}" for number, task in enumerate(tasks)}
    yield "flowchart LR"
    for task in tasks:
        yield f'  {numbers[task.task_id]}["{_label(task)}"]'
    for task in tasks:
        yield from (f"  {numbers[upstream]} --> {numbers[task.task_id]}" for upstream in task.upstream)


def dot_lines(dag_id: str, tasks: Sequence[rest.dags.DagTask]) -> Iterator[str]:
    yield f'digraph "{dag_id}" {{'
    yield "  rankdir=LR; node [shape=box];"
    for task in tasks:
        yield f'  "{task.task_id}" [label="{_label(task)}"];'
    for task in tasks:
        yield from (f'  "{upstream}" -> "{task.task_id}";' for upstream in task.upstream)
    yield "}"


def _label(task: rest.dags.DagTask) -> str:
    return f"{task.task_id} []" if task.mapped else task.task_id


def _downstream(tasks: Sequence[rest.dags.DagTask]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {task.task_id: [] for task in tasks}
    for task in tasks:
        for upstream in task.upstream:
            found[upstream].append(task.task_id)
    return found
