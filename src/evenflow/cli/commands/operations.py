"""The common part of ``evenflow tasks`` and ``evenflow runs`` for clearing and marking: they ask first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from cyclopts import Parameter

from evenflow.cli.input.questions import Yes, check_that_somebody_is_there, confirm
from evenflow.cli.input.run_names import named_run
from evenflow.cli.output.replies import Reply
from evenflow.cli.output.terminal import print_table, say, state_text
from evenflow.cli.remote import remote
from evenflow.contracts import rest
from evenflow.core.model import instance_name
from evenflow.core.quantities import counted

SHOWN = 30  # task instances of a dry run: what fits a screen; --json has all


@Parameter(name="*")
@dataclass(frozen=True)
class Runs:
    """Further runs beside the named one."""

    past: Annotated[bool, Parameter(negative=(), help="Also in the runs of the DAG before this one.")] = False
    future: Annotated[bool, Parameter(negative=(), help="Also in the runs of the DAG after this one.")] = False


@Parameter(name="*")
@dataclass(frozen=True)
class Around:
    """Further tasks beside the named ones."""

    upstream: Annotated[bool, Parameter(negative=(), help="Also all that these tasks depend on.")] = False
    downstream: Annotated[bool, Parameter(negative=(), help="Also all that depends on these tasks.")] = False


@Parameter(name="*")
@dataclass(frozen=True)
class Manner:
    """Whether people are asked, and whether anything is done."""

    dry_run: Annotated[bool, Parameter(name="--dry-run", negative=(), help="Only say what would be touched.")] = False
    yes: Yes = False


THIS_RUN, THESE_TASKS, ASKED = Runs(), Around(), Manner()


async def clear_tasks(dag: str, run_id: str | None, scope: dict[str, Any], manner: Manner) -> Reply:
    """Makes the tasks in ``scope`` of a run, by default the newest, run again."""
    async with remote() as client:
        named = await named_run(client, dag, run_id)
        return await _operate(partial(client.clear, *named), scope, manner, named="/".join(named), what="cleared")


async def mark_tasks(
    dag: str, run_id: str | None, state: str, scope: dict[str, Any], manner: Manner, *, of_run: bool = False
) -> Reply:
    """``of_run``: the run changes, even if none of its tasks does."""
    async with remote() as client:
        named = await named_run(client, dag, run_id)
        send, what = partial(client.mark, *named), f"marked {state}"
        return await _operate(send, {**scope, "state": state}, manner, named="/".join(named), what=what, of_run=of_run)


async def _operate(
    send: Callable[..., Awaitable[rest.runs.Operated]],
    scope: dict[str, Any],
    manner: Manner,
    *,
    what: str,
    named: str,
    of_run: bool = False,
) -> Reply:
    """Shows what would be touched and asks, unless told otherwise; then sends the request. ``what`` is the verb: cleared."""
    run = named if of_run else None
    so_already = f"{run or 'What is named'} is {what.removeprefix('marked ')} already: nothing is to do"
    if not manner.yes and not manner.dry_run:
        check_that_somebody_is_there(", or --dry-run to only look")
    if manner.dry_run or not manner.yes:
        would = await send(**scope, dry_run=True)
        if would.already:
            return Reply(would, so_already)
        show = partial(
            _show, would, f"Nothing would be {what}." if run is None else f"{run} would be {what}; no task of it changes."
        )
        if manner.dry_run or not (would.instances or run):
            return Reply(would, show)
        show()
        confirm()
    done = await send(**scope)
    if done.already:
        return Reply(done, so_already)
    if run is not None:
        return Reply(done, f"{run} is being {what}" + (f", with {_count(done)}" if done.instances else ""))
    if done.instances:
        return Reply(done, f"{_count(done)} {'is' if done.total == 1 else 'are'} being {what}")
    return Reply(
        done, f"No task instance is to be {what}: there is none that it applies to. To see them: evenflow tasks list {named}"
    )


def _show(would: rest.runs.Operated, empty: str) -> None:
    rows = [(i.run_id, instance_name(i.task_id, i.map_index), state_text(i.state)) for i in would.instances]
    print_table(("run", "task", "state"), rows[:SHOWN], empty=empty)
    if len(rows) > 1:
        more = f"... and {'at least ' * (not would.counted)}{would.total - SHOWN:,} more. " if would.total > SHOWN else ""
        say(f"{more}In all: {would.effect.told}", "bright_black")


def _count(done: rest.runs.Operated) -> str:
    runs = "" if len(done.runs) == 1 else f" in {counted(len(done.runs), 'run')}"
    return f"{'at least ' * (not done.counted)}{counted(done.total, 'task instance')}{runs}"
