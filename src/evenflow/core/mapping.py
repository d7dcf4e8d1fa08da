"""Into how many instances a mapping expands: a small expression over the lengths of results. It never sees values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from evenflow.core.model import DagSpec, MapInput, TaskSpec

UpstreamKey = tuple[int, str]  # (task index, XCom key) of a result that a mapping reads
COMBINATIONS = ("zip", "zip_longest", "concat")


def sources(inputs: Iterable[MapInput]) -> Iterator[UpstreamKey]:
    """Yields the results that these inputs map over."""
    for item in inputs:
        if item.task is not None:
            yield item.task, item.key
        yield from sources(item.parts)


def input_length(item: MapInput, results: Mapping[UpstreamKey, int | None]) -> int | None:
    """Returns the length of one input from the lengths of ``results``, or None when one of them cannot be mapped over."""
    if item.task is not None:
        return results.get((item.task, item.key))
    if not item.combine:
        return item.length
    parts = [input_length(part, results) for part in item.parts]
    known = [length for length in parts if length is not None]
    return combined_length(item.combine, known) if len(known) == len(parts) else None


def combined_length(combine: str, lengths: list[int]) -> int:
    """Returns the length of what ``zip``, ``zip_longest`` or ``concat`` make of parts with these lengths."""
    match combine:
        case "zip":
            return min(lengths)
        case "zip_longest":
            return max(lengths)
        case "concat":
            return sum(lengths)
        case _:
            raise ValueError(f"unknown combination {combine!r}")


def product_length(inputs: Iterable[MapInput], results: Mapping[UpstreamKey, int | None]) -> int | None:
    """Returns how many combinations the inputs have, or None when a result cannot be mapped over."""
    lengths = [input_length(item, results) for item in inputs]
    known = [length for length in lengths if length is not None]
    return math.prod(known) if len(known) == len(lengths) else None


def mapped_group(spec: DagSpec, task: TaskSpec) -> int | None:
    """Returns the mapped group around the task, by its position in ``spec.groups``."""
    group = task.group
    while group is not None and spec.groups[group].mapping is None:
        group = spec.groups[group].parent
    return group


def mapped_tasks(spec: DagSpec) -> tuple[bool, ...]:
    """Returns for each task whether it has instances."""
    grouped = any(group.mapping is not None for group in spec.groups)
    return tuple(task.mapping is not None or (grouped and mapped_group(spec, task) is not None) for task in spec.tasks)
