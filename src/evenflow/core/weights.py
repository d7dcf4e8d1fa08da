"""Effective priorities: what ``weight_rule`` makes of each task's ``priority_weight``.

``downstream`` adds the weights of all distinct tasks that wait for a task, directly or not; ``upstream`` those of all tasks for
which it waits; ``absolute`` adds nothing. The sums are exact: sets of tasks are bit sets (one Python int each), joined along the
edges in one pass, so a DAG of V tasks and E edges costs E * V / 64 word operations. For the sum of a set's weights, weights are
taken bit by bit: a mask per bit of the weight, a population count per mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from evenflow.core.limits import INT32_MAX, INT32_MIN


class WeightRule(StrEnum):
    DOWNSTREAM = "downstream"
    UPSTREAM = "upstream"
    ABSOLUTE = "absolute"


def effective_weights(
    upstream: Sequence[Sequence[int]], order: Sequence[int], weights: Sequence[int], rules: Sequence[WeightRule]
) -> list[int]:
    """One weight for each task, clamped to 32 bits.

    ``upstream[i]`` are the tasks that task ``i`` waits for, ``order`` is a topological order of all tasks, and ``weights`` are
    int32.
    """
    effective = list(weights)
    masks = _bit_masks(weights)
    wanted = {rule: [r is rule for r in rules] for rule in set(rules)}
    if WeightRule.UPSTREAM in wanted:
        _add_reachable(effective, upstream, order, masks, wanted[WeightRule.UPSTREAM])
    if WeightRule.DOWNSTREAM in wanted:
        downstream: list[list[int]] = [[] for _ in weights]
        for task, sources in enumerate(upstream):
            for source in sources:
                downstream[source].append(task)
        _add_reachable(effective, downstream, list(reversed(order)), masks, wanted[WeightRule.DOWNSTREAM])
    return [max(INT32_MIN, min(INT32_MAX, weight)) for weight in effective]


def _add_reachable(
    effective: list[int],
    edges: Sequence[Sequence[int]],
    order: Sequence[int],
    masks: list[tuple[int, int]],
    wanted: list[bool],
) -> None:
    """Adds to every wanted task the weights of all tasks that it reaches by ``edges``; ``order`` lists a task after those that it
    reaches.
    """
    reach = [0] * len(edges)
    for task in order:
        bits = 0
        for other in edges[task]:
            bits |= reach[other] | 1 << other
        reach[task] = bits
        if wanted[task] and bits:
            effective[task] += sum(value * (bits & mask).bit_count() for value, mask in masks)


def _bit_masks(weights: Sequence[int]) -> list[tuple[int, int]]:
    """Returns (value of the bit, the tasks whose weight has it), for 32-bit two's complement."""
    masks = []
    for bit in range(32):
        digits = bytearray(b"0" * len(weights))
        for task, weight in enumerate(weights):
            if weight >> bit & 1:
                digits[-1 - task] = 49  # "1"
        mask = int(digits, 2) if weights else 0
        if mask:
            masks.append((-(1 << bit) if bit == 31 else 1 << bit, mask))
    return masks
