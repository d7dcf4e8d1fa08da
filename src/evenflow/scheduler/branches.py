"""What a branch decides: its exit names the tasks that it skips, and the decision is kept for as long as it stands."""

from __future__ import annotations

from collections.abc import Iterable

from evenflow.core.model import UNMAPPED
from evenflow.core.states import TaskEvent, TaskState
from evenflow.scheduler.facts import Facts
from evenflow.scheduler.indexes import skip_whole
from evenflow.scheduler.ledgers import Ledgers
from evenflow.scheduler.ledgers.moves import Item, Key, Moves
from evenflow.store import branches, tasks

Skips = list[tuple[Item, list[int]]]  # a branch, and the indexes of the tasks that it skips


def apply_skips(facts: Facts, ledgers: Ledgers, skips: Skips) -> None:
    """Skips what waits, before it can become ready through the very exit that skips it. What has begun or ended stays as it is, as
    does a task that does not exist.
    """
    if not skips:
        return
    moves, mapped, offers, messages = ledgers.moves, ledgers.mapped, ledgers.offers, ledgers.messages
    targets: dict[Key, Item] = {}
    for branch, named in skips:
        graph = facts.runs[branch.run_key].graph
        skipped = [task_index for task_index in named if 0 <= task_index < graph.n]
        messages.decisions.append((*branch.key, skipped))
        for task_index in skipped:
            targets.setdefault(_target(facts, branch, task_index), branch)
    _load(facts, moves, targets)
    whole = {key[:2]: branch for key, branch in targets.items() if key[2] == UNMAPPED}
    expanded = {key for key in whole if (*key, UNMAPPED) not in moves.items or (*key, UNMAPPED) in moves.gone}
    for instance in skip_whole(facts, moves, mapped, expanded) if expanded else ():
        targets[instance.key] = whole[instance.key[:2]]
    for key, branch in targets.items():
        item = moves.items.get(key)
        if item is not None and item.state is TaskState.NONE and key not in moves.gone and not offers.has_begun(key):
            skip(facts, moves, item, branch.task_index)


def skip(facts: Facts, moves: Moves, item: Item, branch: int) -> None:
    """By the decision of the task with the index ``branch``."""
    name = facts.runs[item.run_key].graph.task(branch).task_id
    moves.apply(item, TaskEvent.SKIP, {"skipped_by": name})
    moves.explain(item, f"Skipped by the decision of task {name!r}.")


def standing_skips(facts: Facts, run_key: int) -> dict[tuple[int, int], int]:
    """What the decisions of a run still skip, as (task index, map index), and the index of the branch that does: a decision stands
    while its branch is a success. A task that is cleared alone is skipped again by it.
    """
    graph = facts.runs[run_key].graph
    return {
        (task_index, row.map_index if graph.same_span(row.task_index, task_index) else UNMAPPED): row.task_index
        for row in branches.read_standing(facts.conn, run_key).all()
        for task_index in row.skipped
    }


def _target(facts: Facts, branch: Item, task_index: int) -> Key:
    """Index by index where the two tasks depend on each other so, else the whole task."""
    same = facts.runs[branch.run_key].graph.same_span(branch.task_index, task_index)
    return (branch.run_key, task_index, branch.map_index if same else UNMAPPED)


def _load(facts: Facts, moves: Moves, keys: Iterable[Key]) -> None:
    unread = [key for key in keys if key not in moves.items]
    if not unread:
        return
    for row in tasks.read_instances(facts.conn, unread).all():
        moves.item(row.run_key, row.task_index, row.map_index, row.state, row.epoch, row.try_number)
    untouched = [key for key in unread if key not in moves.items and key[2] != UNMAPPED]
    if untouched:
        waiting = {row[:2] for row in tasks.read_mapped(facts.conn, [key[:2] for key in untouched]).all() if row.rest == "none"}
        for key in untouched:
            if key[:2] in waiting:
                moves.new_item(*key)
