"""Visits every state that a model can reach, breadth first, so that what goes wrong is shown by a shortest way to it.

A *model* is an initial state, a function that gives the steps out of a state, one that says what is wrong with a state, and one
that says whether a state is a good end. States are hashable and equal when nothing tells them apart; a model maps states that are
mirror images of each other to one.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

State = TypeVar("State", bound=Hashable)


@dataclass(slots=True)
class Explored(Generic[State]):
    """``wrong``: the first thing that was found wrong, ``trace`` the steps to it. ``hopeless``: whether it is wrong because no good
    end can be reached any more.
    """

    states: int = 0
    steps: int = 0
    depth: int = 0
    wrong: str | None = None
    hopeless: bool = False
    trace: list[str] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)  # the kinds of steps

    def __str__(self) -> str:
        head = f"{self.states:,} states, {self.steps:,} steps, {self.depth} deep"
        return head if self.wrong is None else "\n  ".join([f"{head}: {self.wrong}", *self.trace])


def explore(
    initial: State,
    steps: Callable[[State], Iterable[tuple[str, State]]],
    wrong: Callable[[State], str | None],
    good: Callable[[State], bool],
    *,
    most: int,
) -> Explored[State]:
    """All states from ``initial``, or as far as the first wrong one. Raises :class:`OverflowError` above ``most`` states.

    When none is wrong in itself, one from which no good end can be reached is.
    """
    found = Explored[State]()
    index: dict[State, int] = {initial: 0}
    states: list[State] = [initial]
    parents, reasons, depths = array("q", [-1]), [""], array("q", [0])
    edges_from, edges_to = array("q"), array("q")
    at = 0
    while at < len(states):
        state = states[at]
        if (what := wrong(state)) is not None:
            return _told(found, what, at, states, parents, reasons, depths)
        for name, after in steps(state):
            found.steps += 1
            found.taken.add(name.split(" ", 1)[0])
            number = index.get(after)
            if number is None:
                number = index[after] = len(states)
                if number >= most:
                    raise OverflowError(f"There are more than {most:,} states.")
                states.append(after)
                parents.append(at)
                reasons.append(name)
                depths.append(depths[at] + 1)
            edges_from.append(at)
            edges_to.append(number)
        at += 1
    lost = _first_hopeless(states, good, edges_from, edges_to)
    if lost is not None:
        found.hopeless = True
        return _told(found, "no good end can be reached any more", lost, states, parents, reasons, depths)
    found.states, found.depth = len(states), depths[-1]
    return found


def _first_hopeless(states: list[State], good: Callable[[State], bool], edges_from: array[int], edges_to: array[int]) -> int | None:
    """The first state from which no good one can be reached."""
    ahead = [0] * (len(states) + 1)  # sources of each state, packed into one array
    for to in edges_to:
        ahead[to + 1] += 1
    for i in range(len(states)):
        ahead[i + 1] += ahead[i]
    filled = ahead.copy()
    sources = array("q", bytes(8 * len(edges_to)))
    for source, to in zip(edges_from, edges_to, strict=True):
        sources[filled[to]] = source
        filled[to] += 1
    hopeful = bytearray(len(states))
    front = [i for i, state in enumerate(states) if good(state)]
    for i in front:
        hopeful[i] = 1
    while front:
        i = front.pop()
        for source in sources[ahead[i] : ahead[i + 1]]:
            if not hopeful[source]:
                hopeful[source] = 1
                front.append(source)
    first = hopeful.find(0)
    return None if first < 0 else first


def _told(
    found: Explored[State], what: str, at: int, states: list[State], parents: array[int], reasons: list[str], depths: array[int]
) -> Explored[State]:
    found.wrong, found.states, found.depth = what, len(states), depths[at]
    while at > 0:
        found.trace.append(reasons[at])
        at = parents[at]
    found.trace.reverse()
    return found
