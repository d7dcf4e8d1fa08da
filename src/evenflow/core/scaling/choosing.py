"""Chooses the workers that go first: those whose end disturbs least (R-AS5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from evenflow.core.limits import INT32_MAX
from evenflow.core.scaling.policy import ScalingPolicy

TAG = "tag:"  # before the name of a DAG's tag, as a label


@dataclass(frozen=True, slots=True)
class Candidate:
    """A worker of a fleet. ``cost`` is that of its tries; None: one of them is protected."""

    name: str
    is_ready: bool
    began_at: float
    running: int = 0
    cost: float | None = 0.0
    out_of_service: bool = False  # by a person: it takes nothing, and goes first


@dataclass(frozen=True, slots=True)
class Choice:
    chosen: tuple[str, ...]
    protected: tuple[str, ...]
    passed_over: tuple[str, ...]  # those with a higher cost, the cheapest first


def labels_of(dag_id: str, task_id: str, tags: Iterable[str]) -> tuple[str, ...]:
    """Returns the labels that patterns are matched with."""
    return (dag_id, f"{dag_id}.{task_id}", *(TAG + tag for tag in tags))


def is_protected(labels: Iterable[str], policy: ScalingPolicy) -> bool:
    return any(fnmatchcase(label, pattern) for label in labels for pattern in policy.protect)


def weight_of(labels: Sequence[str], policy: ScalingPolicy) -> float:
    """Returns the largest weight whose pattern matches, or 1."""
    found = [weight for pattern, weight in policy.weights.items() if any(fnmatchcase(label, pattern) for label in labels)]
    return max(found, default=1.0)


def cost_of(tasks: Iterable[tuple[float, float]]) -> float:
    """Returns the cost of tasks, given as (seconds that each has run, its weight). The square makes a task of an hour outweigh
    sixteen of five minutes.
    """
    return sum(max(elapsed_s, 0.0) ** 2 * weight for elapsed_s, weight in tasks)


def ranks(candidates: Iterable[Candidate]) -> dict[str, int]:
    """Returns an int32 for each worker: its place by cost, equal for equal costs, and the largest int32 for a protected worker. The
    costs themselves exceed that range after half a day.
    """
    known = list(candidates)
    places: Mapping[float, int] = {cost: place for place, cost in enumerate(sorted({c.cost for c in known if c.cost is not None}))}
    return {c.name: INT32_MAX if c.cost is None else places[c.cost] for c in known}


def choose(candidates: Iterable[Candidate], number: int) -> Choice:
    """Chooses ``number`` workers, or fewer where the others are protected. Workers that are not ready go first, then those that
    people took out of service; of the same cost the youngest.
    """
    known = list(candidates)
    order = sorted(
        (c for c in known if c.cost is not None), key=lambda c: (c.is_ready, not c.out_of_service, c.cost, -c.began_at, c.name)
    )
    return Choice(
        tuple(c.name for c in order[:number]),
        tuple(sorted(c.name for c in known if c.cost is None)),
        tuple(c.name for c in order[number:]),
    )
