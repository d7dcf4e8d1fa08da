"""What must hold in every state, and what a good end is."""

from __future__ import annotations

from evenflow.core.states import FINISHED
from tests.protocol import control
from tests.protocol.state import Said, Task, World


def wrong(world: World, *, slots: int | None = None, apart: bool = True) -> str | None:
    """What is wrong with a state, if anything is. ``slots``: no claim exceeds them; ``apart``: no two tries of a task run."""
    for i, task in enumerate(world.tasks):
        if apart and sum(t.task == i and t.runs and (t.outruns or not w.frozen) for w in world.workers for t in w.tries) > 1:
            return f"two processes of task {i} run at once"
        if (what := _wrong_task(task)) is not None:
            return f"task {i}: {what}"
    if slots is not None:
        for s in range(len(world.services)):
            held = [t for t in world.tasks if t.dispatch and t.dispatch.service == s and t.epoch not in _ended(world, t)]
            if len(held) > slots:
                return f"service {s} has claimed {len(held)} tries with {slots} slots"
    if world.used != (held_now := sum(bool(t.dispatch) for t in world.tasks)):
        return f"the limit counts {world.used} and {held_now} hold it"
    return None


def _wrong_task(task: Task) -> str | None:
    if len(set(task.begun)) < len(task.begun):
        return "a try is begun twice"
    if len(set(task.ended)) < len(task.ended):
        return "a try is ended twice"
    if bool(task.dispatch) != control.holds(task):
        return f"it is {task.state}, and its dispatch says otherwise"
    if task.dispatch and task.dispatch.epoch != task.epoch:
        return f"its epoch is {task.epoch}, that of its dispatch {task.dispatch.epoch}"
    if task.state == "success" and Said(task.epoch, "success") not in task.told:
        return "it is said to have succeeded, and its last try did not"
    return None


def _ended(world: World, task: Task) -> set[int]:
    return {said.epoch for said in task.told} | {e.epoch for w in world.workers for e in w.exits}


def good(world: World) -> bool:
    """Everything has ended, and nothing is left over."""
    idle = world.used == 0 and not any(worker.tries for worker in world.workers)
    return idle and all(task.state in FINISHED and not task.inbox for task in world.tasks)
