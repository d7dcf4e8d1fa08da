"""Stand-ins for the tasks of a run: what they return, raise or choose, and how long they take."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from evenflow.core.ending import Ending
from evenflow.core.likeness import few, meant_or
from evenflow.core.model import UNMAPPED, instance_name
from evenflow.errors import BadArgument
from evenflow.sdk.dag import DAG
from evenflow.sdk.local.tries import Tried
from evenflow.sdk.operators.branching import cut_off, not_chosen, task_indexes
from evenflow.sdk.task import Task
from evenflow.sdk.trying.runner import Channel, TryContext, guarded, result_text

BRANCHES = ("branch", "latest_only")  # kinds of operators
SHORT_CIRCUIT = "short_circuit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stub:
    """``skips`` are ids of tasks. ``times`` is the number of an instance's tries that it replaces; None means all further ones."""

    returns: Any = None
    raises: BaseException | type[BaseException] | None = None
    skips: tuple[str, ...] = ()
    takes_s: float = 0.0
    times: int | None = None

    def answer(self, dag: DAG, task: Task, channel: Channel) -> Ending:
        if self.raises is not None:
            raise self.raises
        return Ending(outcome="success", result=result_text(task, self.returns, channel), skip=task_indexes(dag, self.skips))


class Stubs:
    """The stubs of one DAG."""

    def __init__(self, dag: DAG) -> None:
        self._dag = dag
        self._stubs: dict[tuple[str, int | None], list[Stub]] = defaultdict(list)

    @property
    def task_ids(self) -> set[str]:
        return {task_id for task_id, _ in self._stubs}

    def task(self, task_id: str, map_index: int | None) -> Task:
        """Raises :class:`BadArgument` when the task does not exist, or has no such instances."""
        if task_id not in self._dag.task_dict:
            raise BadArgument(
                f"DAG {self._dag.dag_id!r} has no task {task_id!r} to stub. {_suggestion(task_id, self._dag.task_dict)}"
            )
        task = self._dag.task_dict[task_id]
        if map_index is not None and (map_index < 0 or not task.is_mapped):
            cure = "Give a number from 0 on." if task.is_mapped else "It is not mapped: leave map_index out."
            raise BadArgument(f"There is no instance {map_index} of task {task_id!r} to stub. {cure}")
        return task

    def add(self, task_id: str, map_index: int | None, stub: Stub) -> None:
        before = self._stubs[task_id, map_index]
        if before and before[-1].times is None:
            name = instance_name(task_id, UNMAPPED if map_index is None else map_index)
            raise BadArgument(
                f"Task {name!r} already has a stub for all its tries, so this one is never used. Give that one times=..."
            )
        before.append(stub)

    def of_try(self, task_id: str, map_index: int, tries_before: int) -> Stub | None:
        """Returns the stub, or None when the task runs for real. A stub for the instance comes before one for all."""
        for address in (map_index, None):
            covered = 0
            for stub in self._stubs.get((task_id, address), ()):
                covered += stub.times or 0
                if stub.times is None or tries_before < covered:
                    return stub
        return None


def skips_of(task: Task, *, returns: Any, chooses: str | Iterable[str] | None, is_choice: bool) -> tuple[str, ...]:
    """Returns what the stub of a branch or a short circuit skips. Raises :class:`BadArgument` for what such a task cannot do."""
    if task.task_type in BRANCHES and not is_choice:
        raise BadArgument(
            f"Task {task.task_id!r} is a branch. Say what it chooses, ids of tasks or groups, or []: "
            f"stub({task.task_id!r}, chooses=...)"
        )
    if is_choice and task.task_type not in BRANCHES:
        raise BadArgument(f"Task {task.task_id!r} is no branch, so it chooses nothing. Say what it returns: returns=...")
    if is_choice:
        return tuple(not_chosen(task, chooses))
    if task.task_type == SHORT_CIRCUIT and not returns:
        return tuple(cut_off(task, everything=getattr(task, "ignore_downstream_trigger_rules", True)))
    return ()


class StubbedTries:
    """The tries of one run with their stubs."""

    def __init__(self, stubs: Stubs, timeouts: dict[str, float | None]) -> None:
        self._stubs, self._timeouts = stubs, timeouts
        self._tries: Counter[tuple[str, int]] = Counter()

    def stand_in(self, dag: DAG, context: TryContext, channel: Channel) -> Tried | None:
        """Returns the stub's result, or None when the task should run for real."""
        key = context.task_id, context.map_index
        stub = self._stubs.of_try(*key, self._tries[key])
        if stub is None:
            return None
        self._tries[key] += 1
        timeout = self._timeouts[context.task_id]
        if timeout is not None and stub.takes_s > timeout:
            failed = Ending(outcome="failed", reason=f"execution_timeout of {timeout:g} s exceeded")
            return Tried(failed, took_s=timeout)
        return Tried(guarded(lambda: stub.answer(dag, dag.get_task(context.task_id), channel)), took_s=stub.takes_s)


def _suggestion(name: str, known: Iterable[str]) -> str:
    names = list(known)
    return meant_or(name, names, f"It has: {few(names) or 'none'}.")
