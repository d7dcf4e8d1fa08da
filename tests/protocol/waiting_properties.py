"""What must hold in every state of a task that waits, and what a good end is."""

from __future__ import annotations

from tests.protocol.waiting_state import World

ENDED = ("success", "failed", "skipped")


def wrong(world: World) -> str | None:
    """What is wrong with a state, if anything is."""
    task, row, waits = world.task, world.task.dispatch, world.task.deferral
    running = [claimed.epoch for t in world.triggerers if not t.stopped for claimed in t.runs]
    if len(set(running)) < len(running):
        return "a trigger runs twice at once"
    if len(set(task.resumed)) < len(task.resumed):
        return "a deferral has resumed twice"
    if row and waits and row.of != waits.epoch:
        return f"what resumed was of {row.of}, and {waits.epoch} waited"
    if bool(waits) != (task.state == "deferred" or bool(row and row.purpose)):
        return f"it is {task.state}, and its deferral says otherwise"
    if bool(row) != (task.state in ("queued", "running")):
        return f"it is {task.state}, and its dispatch says otherwise"
    held = (int(bool(row or waits)), int(bool(row)))
    if (world.pool, world.run) != held:
        return f"limits count {world.pool} and {world.run}, and held are {held[0]} and {held[1]}"
    if task.state in ENDED and task.job:
        return "it has ended, and what it has started runs on"
    return None


def good(world: World) -> bool:
    """It has ended and nothing is left over."""
    idle = not world.process and not world.wire and not any(t.runs for t in world.triggerers)
    return idle and world.task.state in ENDED and not world.task.inbox
