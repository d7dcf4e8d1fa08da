"""``evenflow plan``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from evenflow.cli.output.replies import Reply, replies
from evenflow.cli.output.terminal import print_table, say
from evenflow.cli.remote import remote
from evenflow.contracts import rest
from evenflow.core.object_names import limit_name
from evenflow.core.quantities import counted

_COLUMNS = ("#", "run", "task", "#tasks", "pool", "#slots", "queue", "#priority")
_UNAPPLIED = {
    "reports": ("report of a worker", "reports of workers"),
    "timers": ("retry that is due", "retries that are due"),
    "pauses": ("DAG that was paused or unpaused", "DAGs that were paused or unpaused"),
    "runs": ("run that may begin", "runs that may begin"),
}


@replies
async def plan(
    *,
    limit: Annotated[int, Parameter(help="How many lines of each list at most.")] = 20,
    pool: Annotated[str | None, Parameter(help="With `--slots`: what would follow if this pool had these.")] = None,
    slots: Annotated[int | None, Parameter(help="Of the pool.")] = None,
) -> Reply:
    """The tasks that would start next, in order, and what blocks the rest: a round of the scheduler that changes nothing.

    A line stands for tasks of one run that no limit distinguishes.
    """
    async with remote() as client:
        found = await client.get_plan(limit=limit, pool=pool, slots=slots)
    return Reply(found, lambda: _show(found))


def _show(plan: rest.plan.Plan) -> None:
    if not plan.schedulers:
        say("No scheduler is alive, so nothing starts. Start one: evenflow scheduler (or everything: evenflow up)\n", "red")
    say(f"Starts now: {counted(plan.starting, 'task')}" if plan.starting else "Starts now", "bold")
    starts = (_row(number, lane) for number, lane in enumerate(plan.starts, 1))
    nothing = "Nothing: whatever is ready waits for a limit." if plan.waiting or plan.blocked else "Nothing is ready."
    print_table(_COLUMNS, starts, empty=nothing)
    if (more := plan.starting - sum(lane.count for lane in plan.starts)) > 0:
        say(f"... and {counted(more, 'task')} more", "bright_black")
    if not plan.complete:
        say("One round ends here; the next one follows at once and may start more.", "yellow")
    if plan.waiting:
        say("\nNext, as room appears", "bold")
        waiting = ((*_row(number, w.lane), _blocked_by(w)) for number, w in enumerate(plan.waiting, 1))
        print_table((*_COLUMNS, "waits for"), waiting, empty="")
    if plan.blocked:
        say("\nWhat blocks the rest", "bold")
        print_table(("#tasks", "wait for", "#used", "#of"), map(_group, plan.blocked), empty="")
        if not plan.counted:
            say("... and more, not counted here", "bright_black")
    _show_unapplied(plan)


def _show_unapplied(plan: rest.plan.Plan) -> None:
    found = [f"{n} {_UNAPPLIED[kind][n != 1]}" for kind, n in plan.unapplied.items() if n and kind in _UNAPPLIED]
    if found:
        say(f"\nA scheduler looks at these first, and they may change the plan: {', '.join(found)}", "yellow")


def _row(number: int, lane: rest.plan.PlannedLane) -> tuple[object, ...]:
    names = ", ".join(task.task_id for task in lane.tasks)
    if sum(task.count for task in lane.tasks) < lane.count:
        names += ", ..."
    priority = f"{lane.run_priority} / {lane.priority}" if lane.run_priority else str(lane.priority)
    return (
        number,
        f"{lane.dag_id}/{lane.run_id}",
        Text(names, style="bold"),
        f"{lane.count:,}",
        lane.pool,
        lane.pool_slots,
        lane.queue,
        priority,
    )


def _blocked_by(waiting: rest.plan.WaitingLane) -> Text:
    if waiting.closed is not None:
        return Text(f"{waiting.closed}, which is closed", style="yellow")
    if waiting.by is None:
        return Text("its turn", style="bright_black")
    if waiting.kept:
        return Text(f"{_named(waiting.by)}, kept for a bigger task", style="yellow")
    return Text(f"{_named(waiting.by)} ({waiting.by.used} of {waiting.by.capacity})", style="yellow")


def _group(blocked: rest.plan.BlockedTasks) -> tuple[object, ...]:
    tasks = f"{blocked.tasks:,}"
    if blocked.closed is not None:
        return tasks, f"{blocked.closed} to be active", "", ""
    if blocked.by is None:
        return tasks, "their DAG to be unpaused" if blocked.paused else "their turn", "", ""
    kept = ", kept for a bigger task" if blocked.kept else ""
    return tasks, f"{_named(blocked.by)}{kept}", f"{blocked.by.used:,}", f"{blocked.by.capacity:,}"


def _named(limit: rest.plan.LimitUse) -> str:
    return limit_name(limit.limit, limit.name)
