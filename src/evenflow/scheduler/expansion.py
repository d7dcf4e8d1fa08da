"""Into how many instances mapped tasks turn, decided when what they map over has ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from evenflow.core.mapping import Source, product_length, sources
from evenflow.core.model import MapInput
from evenflow.core.states import TaskEvent
from evenflow.scheduler.facts import Facts
from evenflow.scheduler.ledgers.mapped_tasks import MappedTasks
from evenflow.scheduler.ledgers.moves import Item, Moves
from evenflow.store import tasks

Deltas = dict[tuple[int, int], list[int]]  # (run_key, task_index): [total, success, failed, skipped]


def expand(facts: Facts, moves: Moves, mapped: MappedTasks, items: list[Item], deltas: Deltas) -> None:
    """Turns mapped tasks whose upstreams are done into instances, and those that map over them one to one with them, or ends them
    when there can be none.
    """
    if not items:
        return
    lengths = read_lengths(facts, ((item.run_key, _inputs(facts, item)) for item in items))
    for item in items:
        run_key, graph = item.run_key, facts.runs[item.run_key].graph
        inputs = _inputs(facts, item)
        span = graph.spans[graph.span_of[item.task_index]]
        length = product_length(inputs, lengths[run_key]) if span.head == item.task_index else 0
        if length is None or length > graph.spec.max_map_length:
            moves.apply(item, TaskEvent.FAIL)
            moves.explain(item, unmappable(facts, run_key, inputs, length))
        elif length == 0:
            moves.apply(item, TaskEvent.SKIP)
            moves.explain(item, NOTHING)
        else:
            for task_index in span.tasks:
                unfold(facts, mapped, run_key, task_index, length, deltas, ready=task_index == item.task_index)


NOTHING = "There was nothing to map over."


def read_lengths(facts: Facts, inputs_of: Iterable[tuple[int, tuple[MapInput, ...]]]) -> dict[int, dict[Source, int | None]]:
    """The lengths of all results that these inputs map over, by run."""
    lengths: dict[int, dict[Source, int | None]] = defaultdict(dict)
    wanted = {
        (run_key, task_index, key, facts.runs[run_key].graph.mapped[task_index])
        for run_key, inputs in inputs_of
        for task_index, key in sources(inputs)
    }
    if wanted:
        for run_key, task_index, key, length in tasks.result_lengths(facts.conn, wanted).all():
            lengths[run_key][task_index, key] = length
    return lengths


def unfold(facts: Facts, mapped: MappedTasks, run_key: int, task_index: int, length: int, deltas: Deltas, *, ready: bool) -> None:
    """A task becomes ``length`` instances, for which all that waits for the whole of it has to wait from now on."""
    mapped.expand(run_key, task_index, length, ready=ready)
    graph = facts.runs[run_key].graph
    span = graph.span_of[task_index]
    for other in graph.downstream[task_index]:
        if graph.span_of[other] != span:
            deltas[run_key, other][0] += length - 1
    for gate in graph.gates_of.get(task_index, ()):
        deltas[run_key, gate][0] += length - 1


def unmappable(facts: Facts, run_key: int, inputs: tuple[MapInput, ...], length: int | None) -> str:
    """Why there can be no instances, for people."""
    graph = facts.runs[run_key].graph
    if length is not None:
        return (
            f"It would have {length:,} instances, above the limit of {graph.spec.max_map_length:,} (max_map_length of the DAG). "
            "Map over fewer, larger parts."
        )
    names = ", ".join(dict.fromkeys(graph.task(task_index).task_id for task_index, _ in sources(inputs)))
    return f"It cannot be mapped: {names} returned no list or dict. Return one, an empty one for nothing to do."


def _inputs(facts: Facts, item: Item) -> tuple[MapInput, ...]:
    mapping = facts.runs[item.run_key].graph.task(item.task_index).mapping
    assert mapping is not None
    return mapping.inputs
