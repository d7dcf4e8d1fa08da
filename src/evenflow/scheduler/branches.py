"""What a branch decides: its exit names the tasks that it skips, and the decision is kept for as long as it stands."""

from __future__ import annotations

from collections.abc import Iterable

from evenflow.core.model import UNMAPPED
from evenflow.core.states import TaskEvent, TaskState
from evenflow.scheduler.batch import Batch, Item, Key
from evenflow.scheduler.indexes import skip_whole
from evenflow.store import branches, tasks

Skips = list[tuple[Item, list[int]]]  # a branch, and the indexes of the tasks that it skips


def apply_skips(batch: Batch, skips: Skips) -> None:
    """Skips what waits, before it can become ready through the very exit that skips it. What has begun or ended stays as it is, as
    does a task that does not exist.
    """
    if not skips:
        return
    targets: dict[Key, Item] = {}
    for branch, named in skips:
        graph = batch.runs[branch.run_key].graph
        skipped = [task_index for task_index in named if 0 <= task_index < graph.n]
        batch.decisions.append((*branch.key, skipped))
        for task_index in skipped:
            targets.setdefault(_target(batch, branch, task_index), branch)
    _load(batch, targets)
    whole = {key[:2]: branch for key, branch in targets.items() if key[2] == UNMAPPED}
    expanded = {key for key in whole if (*key, UNMAPPED) not in batch.items or (*key, UNMAPPED) in batch.gone}
    for instance in skip_whole(batch, expanded) if expanded else ():
        targets[instance.key] = whole[instance.key[:2]]
    for key, branch in targets.items():
        item = batch.items.get(key)
        if item is not None and item.state is TaskState.NONE and key not in batch.gone and key not in batch.offered:
            skip(batch, item, branch.task_index)


def skip(batch: Batch, item: Item, branch: int) -> None:
    """By the decision of the task with the index ``branch``."""
    name = batch.runs[item.run_key].graph.task(branch).task_id
    batch.apply(item, TaskEvent.SKIP, {"skipped_by": name})
    batch.explain(item, f"Skipped by the decision of task {name!r}.")


def standing_skips(batch: Batch, run_key: int) -> dict[tuple[int, int], int]:
    """What the decisions of a run still skip, as (task index, map index), and the index of the branch that does: a decision stands
    while its branch is a success. A task that is cleared alone is skipped again by it.
    """
    graph = batch.runs[run_key].graph
    return {
        (task_index, row.map_index if graph.same_span(row.task_index, task_index) else UNMAPPED): row.task_index
        for row in branches.read_standing(batch.conn, run_key).all()
        for task_index in row.skipped
    }


def _target(batch: Batch, branch: Item, task_index: int) -> Key:
    """Index by index where the two tasks depend on each other so, else the whole task."""
    same = batch.runs[branch.run_key].graph.same_span(branch.task_index, task_index)
    return (branch.run_key, task_index, branch.map_index if same else UNMAPPED)


def _load(batch: Batch, keys: Iterable[Key]) -> None:
    unread = [key for key in keys if key not in batch.items]
    if not unread:
        return
    for row in tasks.read_instances(batch.conn, unread).all():
        batch.item(row.run_key, row.task_index, row.map_index, row.state, row.epoch, row.try_number)
    untouched = [key for key in unread if key not in batch.items and key[2] != UNMAPPED]
    if untouched:
        waiting = {row[:2] for row in tasks.read_mapped(batch.conn, [key[:2] for key in untouched]).all() if row.rest == "none"}
        for key in untouched:
            if key[:2] in waiting:
                batch.new_item(*key)
