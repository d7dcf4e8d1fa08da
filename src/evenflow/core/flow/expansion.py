"""Decides into how many instances a mapped task expands, once what it maps over has ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evenflow.core.asking import Asking
from evenflow.core.flow.level import Level
from evenflow.core.flow.questions import MeasureResults
from evenflow.core.flow.state import Flow, T
from evenflow.core.graph import Graph
from evenflow.core.mapping import UpstreamKey, product_length, sources
from evenflow.core.model import MapInput
from evenflow.core.states import Ender, TaskEvent

NOTHING = "There was nothing to map over."


def expand_ready(flow: Flow[T], level: Level) -> Asking[None]:
    """Expands mapped tasks whose upstreams are done, and with them the tasks that map over them one to one. Ends a task that can
    have no instances.
    """
    items, flow.unexpanded = flow.unexpanded, []
    if not items:
        return
    inputs_of = [_inputs(flow.runs[item.run_key].graph, item.task_index) for item in items]
    lengths = yield from measure(flow, ((item.run_key, inputs) for item, inputs in zip(items, inputs_of, strict=True)))
    for item, inputs in zip(items, inputs_of, strict=True):
        run_key, graph = item.run_key, flow.runs[item.run_key].graph
        region = graph.regions[graph.region_of[item.task_index]]
        length = product_length(inputs, lengths.get(run_key, {})) if region.head == item.task_index else 0
        if length is None or length > graph.spec.max_map_length:
            flow.instances.apply(item, TaskEvent.FAIL)
            flow.instances.explain(item, unmappable(graph, inputs, length))
        elif length == 0:
            flow.instances.apply(item, TaskEvent.SKIP)
            flow.instances.explain(item, NOTHING, Ender.NOTHING)
        else:
            for task_index in region.tasks:
                mapped = flow.expand(run_key, task_index, length)
                level.lengthen(run_key, task_index, length)
                if task_index == item.task_index:
                    flow.mapped.move(mapped, TaskEvent.READY, lane=True)


def measure(
    flow: Flow[T], inputs_of: Iterable[tuple[int, tuple[MapInput, ...]]]
) -> Asking[Mapping[int, Mapping[UpstreamKey, int | None]]]:
    """Returns the lengths of all results that these inputs map over, by run."""
    wanted = MeasureResults(
        {
            (run_key, task_index, key, flow.runs[run_key].graph.mapped[task_index])
            for run_key, inputs in inputs_of
            for task_index, key in sources(inputs)
        }
    )
    lengths: dict[int, dict[UpstreamKey, int | None]] = {}
    if wanted.results:
        yield [wanted]
        for run_key, task_index, key, length in wanted.answer:
            lengths.setdefault(run_key, {})[task_index, key] = length
    return lengths


def unmappable(graph: Graph, inputs: tuple[MapInput, ...], length: int | None) -> str:
    """Returns why a task can have no instances, for people."""
    if length is not None:
        return (
            f"It would have {length:,} instances, above the limit of {graph.spec.max_map_length:,} (max_map_length of the DAG). "
            "Map over fewer, larger parts."
        )
    names = ", ".join(dict.fromkeys(graph.task(task_index).task_id for task_index, _ in sources(inputs)))
    return f"It cannot be mapped: {names} returned no list or dict. Return one, an empty one for nothing to do."


def _inputs(graph: Graph, task_index: int) -> tuple[MapInput, ...]:
    mapping = graph.task(task_index).mapping
    assert mapping is not None
    return mapping.inputs
