"""What ``evenflow tasks`` and ``evenflow runs`` have in common when they clear and mark: ask first, then do."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any

from cyclopts import Parameter

from evenflow.cli.input.run_names import named_run
from evenflow.cli.output.terminal import print_json, print_table, say, state_text
from evenflow.cli.remote import remote
from evenflow.contracts import rest
from evenflow.core.model import instance_name
from evenflow.core.plurals import counted
from evenflow.errors import ParamError

Yes = Annotated[bool, Parameter(name=["--yes", "-y"], negative=(), help="Do not ask first.")]
DryRun = Annotated[bool, Parameter(name="--dry-run", negative=(), help="Only say what would be touched.")]
Upstream = Annotated[bool, Parameter(negative=(), help="Also all that these tasks depend on.")]
Downstream = Annotated[bool, Parameter(negative=(), help="Also all that depends on these tasks.")]
Past = Annotated[bool, Parameter(negative=(), help="Also in the runs of the DAG before this one.")]
Future = Annotated[bool, Parameter(negative=(), help="Also in the runs of the DAG after this one.")]
SHOWN = 30  # task instances of a dry run: what fits a screen; --json has all


async def ask_and_clear(dag: str, run_id: str | None, scope: dict[str, Any], *, yes: bool, dry_run: bool, json: bool) -> None:
    """Has what is in ``scope`` of a run, the newest if none is named, run again."""
    async with remote() as client:
        named = await named_run(client, dag, run_id)
        await ask_and_do(
            partial(client.clear, *named), scope, named="/".join(named), what="cleared", yes=yes, dry_run=dry_run, json=json
        )


async def ask_and_do(
    send: Callable[[dict[str, Any]], Awaitable[rest.runs.Operated]],
    scope: dict[str, Any],
    *,
    what: str,
    named: str,
    of_run: bool = False,
    yes: bool,
    dry_run: bool,
    json: bool,
) -> None:
    """Shows what would be touched and asks, unless told ``yes``; then sends the request. ``what`` is the verb: cleared. ``named``
    is the run; ``of_run``: something happens to it, also when no task of it changes.
    """
    run = named if of_run else None
    if not yes and not dry_run:
        check_that_somebody_is_there(", or --dry-run to only look")
    if dry_run or not yes:
        would = await send({**scope, "dry_run": True})
        if dry_run and json:
            print_json(would)
            return
        if would.already:
            _say_that_it_is_so(run, what)
            return
        _show(would, f"Nothing would be {what}." if run is None else f"{run} would be {what}; no task of it changes.")
        if dry_run or not (would.instances or run) or not _confirmed():
            return
    done = await send(scope)
    if json:
        print_json(done)
    elif done.already:
        _say_that_it_is_so(run, what)
    elif run is not None:
        touched = f", with {_count(done)}" if done.instances else ""
        say(f"{run} is being {what}{touched}")
    elif done.instances:
        say(f"{_count(done)} {'is' if done.total == 1 else 'are'} being {what}")
    else:
        say(f"No task instance is to be {what}: there is none that it applies to. To see them: evenflow tasks list {named}")


def _say_that_it_is_so(run: str | None, what: str) -> None:
    say(f"{run or 'What is named'} is {what.removeprefix('marked ')} already: nothing is to do")


def agreed(what: str, *, yes: bool) -> bool:
    """Whether to go on with ``what`` cannot be undone: asks, unless told ``yes``."""
    if yes:
        return True
    check_that_somebody_is_there()
    say(what)
    return _confirmed()


def check_that_somebody_is_there(otherwise: str = "") -> None:
    if not sys.stdin.isatty():
        raise ParamError(f"This asks before it does anything, and there is nobody to ask. Say --yes{otherwise}.")


def _show(would: rest.runs.Operated, empty: str) -> None:
    rows = [(i.run_id, instance_name(i.task_id, i.map_index), state_text(i.state)) for i in would.instances]
    print_table(("run", "task", "state"), rows[:SHOWN], empty=empty)
    if len(rows) > 1:
        more = f"... and {'at least ' * (not would.counted)}{would.total - SHOWN:,} more. " if would.total > SHOWN else ""
        say(f"{more}In all: {_count(would)}", "bright_black")


def _count(done: rest.runs.Operated) -> str:
    runs = "" if len(done.runs) == 1 else f" in {counted(len(done.runs), 'run')}"
    return f"{'at least ' * (not done.counted)}{counted(done.total, 'task instance')}{runs}"


def _confirmed() -> bool:
    confirmed = input("Go on? [y/N] ").strip().lower() in ("y", "yes")
    if not confirmed:
        say("Nothing was done.")
    return confirmed
