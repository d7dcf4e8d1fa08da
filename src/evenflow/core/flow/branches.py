"""The decision of a branch: its exit names the tasks that it skips."""

from __future__ import annotations

from collections.abc import Sequence

from evenflow.core.asking import Asking
from evenflow.core.flow.indexes import know_mapped, skip_virtual
from evenflow.core.flow.questions import FindInstances
from evenflow.core.flow.state import Flow, FlowInstance, InstanceKey, T
from evenflow.core.model import UNMAPPED
from evenflow.core.states import Ender, TaskEvent


def apply_skips(flow: Flow[T], skips: Sequence[tuple[T, Sequence[int]]]) -> Asking[None]:
    """Skips the waiting tasks that these branches named. This happens before the branches' own success is counted, which could make
    them ready. Tasks that have begun, have ended or do not exist are left alone.
    """
    targets: dict[InstanceKey, T] = {}
    for branch, named in skips:
        graph = flow.runs[branch.run_key].graph
        skipped = [task_index for task_index in named if 0 <= task_index < graph.n]
        flow.decisions.append((*branch.key, skipped))
        flow.runs[branch.run_key].disturbed = True
        for task_index in skipped:
            targets.setdefault(_target(flow, branch, task_index), branch)
    if not targets:
        return
    yield from _know(flow, targets)
    whole = {key[:2]: branch for key, branch in targets.items() if key[2] == UNMAPPED}
    items, gone = flow.instances.items, flow.instances.gone
    expanded = [key for key in whole if (*key, UNMAPPED) not in items or (*key, UNMAPPED) in gone]
    for instance in (yield from skip_virtual(flow, expanded)):
        targets[instance.key] = whole[instance.key[:2]]
    for key, branch in targets.items():
        item = flow.waits(key)
        if item is not None and key not in flow.begun:
            skip(flow, item, branch.task_index)


def skip(flow: Flow[T], item: T, branch: int) -> None:
    """Skips an instance by the decision of the task with the index ``branch``."""
    name = flow.runs[item.run_key].graph.task(branch).task_id
    flow.instances.apply(item, TaskEvent.SKIP, {"skipped_by": name})
    flow.instances.explain(item, f"Skipped by the decision of task {name!r}.", Ender.BRANCH)


def _target(flow: Flow[T], branch: FlowInstance, task_index: int) -> InstanceKey:
    """Returns the instance of the same index where the two tasks depend on each other index by index, else the whole task."""
    same = flow.runs[branch.run_key].graph.same_region(branch.task_index, task_index)
    return (branch.run_key, task_index, branch.map_index if same else UNMAPPED)


def _know(flow: Flow[T], targets: dict[InstanceKey, T]) -> Asking[None]:
    """Gives virtual instances among the targets an item, if they wait."""
    items = flow.instances.items
    if unread := [key for key in targets if key not in items]:
        yield [FindInstances(unread)]
    virtual = [key for key in unread if key not in items and key[2] != UNMAPPED]
    yield from know_mapped(flow, {key[:2] for key in virtual})
    for key in virtual:
        if flow.mapped.waiting(key[:2]):
            flow.instances.new_item(*key)
