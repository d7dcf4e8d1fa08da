"""What a cancel, a clear or a mark touches, in counts and names: told before the yes, by the same words to all who ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from evenflow.core.model import instance_name
from evenflow.core.quantities import counted
from evenflow.core.states import FINISHED, HOLDING, TaskState

NAMED = 5  # of what runs outside


@dataclass(frozen=True, slots=True)
class OutsideWork:
    """What a try that runs has outside of Evenflow, and what ends with it: ``kind`` is "Spark application" or "pod"."""

    kind: str
    name: str
    task_id: str
    map_index: int


@dataclass(frozen=True, slots=True)
class Effect:
    """Task instances: ``running`` are those with a process, or on their way to one; ``deferred`` those that wait for a trigger;
    ``mapped`` how many of all of them are of mapped tasks. ``is_counted``: there are not more.
    """

    runs: int
    running: int
    deferred: int
    waiting: int
    ended: int
    mapped: int
    is_counted: bool
    outside: Sequence[OutsideWork]
    told: str

    @classmethod
    def of(
        cls,
        states: Mapping[str, int],
        *,
        runs: int,
        mapped: int,
        outside: Sequence[OutsideWork],
        cancels: bool = False,
        is_counted: bool = True,
    ) -> Self:
        """Of a cancel, what has ended stays as it is."""
        running = sum(states.get(state, 0) for state in HOLDING)
        deferred = states.get(TaskState.DEFERRED, 0)
        ended = sum(states.get(state, 0) for state in FINISHED)
        waiting = sum(states.values()) - running - deferred - ended
        effect = cls(runs, running, deferred, waiting, ended, mapped, is_counted, outside, told="")
        return replace(effect, told=_told(effect, cancels=cancels))


def _told(of: Effect, *, cancels: bool) -> str:
    parts = [
        f"{of.running:,} at work, killed{'' if cancels else ' first'}" if of.running else "",
        f"{of.deferred:,} waiting for a trigger, ended" if of.deferred else "",
        f"{of.waiting:,} waiting{', never started' if cancels else ''}" if of.waiting else "",
        f"{of.ended:,} ended already{', left alone' if cancels else ''}" if of.ended else "",
    ]
    total = of.running + of.deferred + of.waiting + of.ended
    found = [f"{'' if of.is_counted else 'at least '}{counted(total, 'task instance')} of {counted(of.runs, 'run')}"]
    if split := "; ".join(filter(None, parts)):
        found.append(split)
    text = ": ".join(found) + "."
    if of.mapped:
        text += f" {of.mapped:,} of them {'is' if of.mapped == 1 else 'are'} of mapped tasks."
    if of.outside:
        names = [f"{one.kind} {one.name} of {instance_name(one.task_id, one.map_index)}" for one in of.outside[:NAMED]]
        more = f" and {len(of.outside) - NAMED:,} more" if len(of.outside) > NAMED else ""
        text += f" With them ends: {', '.join(names)}{more}."
    return text[0].upper() + text[1:]
