"""``evenflow backfill``."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from evenflow.cli.input.dates import span
from evenflow.cli.input.params import Conf, Params, parse_params, refuse_undeclared
from evenflow.cli.output.replies import Cell, Reply, listed, print_records, verb
from evenflow.cli.output.terminal import local_date, say
from evenflow.cli.remote import remote
from evenflow.contracts import rest
from evenflow.core.limits import PAGE
from evenflow.core.quantities import counted
from evenflow.errors import ParamError

app = App(name="backfill")


@verb(app)
async def create(
    dag_id: str,
    /,
    *,
    from_: Annotated[datetime | None, Parameter(name="--from", help="The first logical date; UTC unless it has an offset.")] = None,
    to: Annotated[str | None, Parameter(help="The last one, included; of a date without a time all of that day.")] = None,
    partitions_of: Annotated[
        str | None, Parameter(help="Of an asset that it makes: only what is missing. Without dates where its partitions are keys.")
    ] = None,
    dry_run: Annotated[bool, Parameter(negative=(), help="Only say which runs would be made.")] = False,
    reverse: Annotated[bool, Parameter(negative=(), help="The newest date first.")] = False,
    max_active_runs: Annotated[int, Parameter(help="Of its runs, how many at once.")] = 10,
    reprocess: Annotated[
        Literal["none", "failed", "completed"], Parameter(help="Which dates that have a run already run again.")
    ] = "none",
    priority: Annotated[int, Parameter(help="Of its runs; scheduled ones have 0.")] = -1,
    param: Params = None,
    conf: Conf = None,
) -> Reply:
    """Make a run for every date of the schedule from --from to --to without one, or for every missing partition."""
    if (from_ is None) != (to is None) or (from_ is None and partitions_of is None):
        raise ParamError("A backfill has a first and a last date. Type both: --from 2026-01-01 --to 2026-01-31")
    request: dict[str, Any] = {
        **span(from_, to),
        "partitions_of": partitions_of,
        "reverse": reverse,
        "reprocess": reprocess,
        "max_active_runs": max_active_runs,
        "params": parse_params(param, conf),
        "priority": priority,
        "dry_run": dry_run,
    }
    async with remote() as client:
        if param:
            refuse_undeclared(param, dag_id, [each.name for each in (await client.get_dag(dag_id)).params])
        plan = await client.create_backfill(dag_id, **request)
    wanted = sum(run.passed_over is None for run in plan.runs)

    def tell() -> None:
        _print_dates(plan.runs)
        say(f"{wanted} of {counted(len(plan.runs), 'date')} would get a run. To make them, leave --dry-run out.")

    made = f"Backfill {plan.backfill_id} makes {counted(wanted, 'run')}. To see how far it is: evenflow backfill show"
    return Reply(plan, tell if dry_run else f"{made} {plan.backfill_id}")


@verb(app, "list")
async def list_(dag_id: Annotated[str | None, Parameter(help="Of this DAG.")] = None, /) -> Reply:
    """Backfills, the newest first."""
    async with remote() as client:
        page = await client.list_backfills(dag_id=dag_id)
    empty = "No backfills. To make one: evenflow backfill create <dag_id> --from DATE --to DATE"
    return listed("backfills", page, rest.backfills.Backfill, cells={"is_paused": _state}, empty=empty)


@verb(app)
async def show(backfill_id: int, /) -> Reply:
    """A backfill, its dates and their runs."""
    async with remote() as client:
        backfill = await client.get_backfill(backfill_id)
        page = await client.list_backfill_runs(backfill_id, limit=PAGE)
    return Reply({"backfill": backfill, "runs": page.items, "more": page.more}, partial(_show, backfill, page.items))


def _show(backfill: rest.backfills.Backfill, dates: list[rest.backfills.BackfillDate]) -> None:
    say(f"Backfill {backfill.backfill_id} of {backfill.dag_id} is {_state(backfill)}", "bold")
    done = backfill.success + backfill.failed
    runs = backfill.total - backfill.passed_over
    ended = f"{done} of {counted(runs, 'run')} {'has' if runs == 1 else 'have'} ended"
    say(f"  {ended}, {backfill.failed} of them failed; {backfill.active} active")
    say(f"  at most {backfill.max_active_runs} at once, priority {backfill.priority}, by {backfill.created_by}")
    _print_dates(dates)


@verb(app)
async def pause(backfill_id: int, /) -> Reply:
    """Make no more runs for now. Existing runs continue."""
    return await _set_paused(backfill_id, True)


@verb(app)
async def resume(backfill_id: int, /) -> Reply:
    """Let a backfill continue."""
    return await _set_paused(backfill_id, False)


@verb(app)
async def cancel(backfill_id: int, /) -> Reply:
    """Make no more runs, and cancel those that have not begun. Running ones continue."""
    async with remote() as client:
        backfill = await client.cancel_backfill(backfill_id)
    return Reply(backfill, f"Backfill {backfill_id} is over; {backfill.active} of its runs go on or are being cancelled")


async def _set_paused(backfill_id: int, is_paused: bool) -> Reply:
    async with remote() as client:
        backfill = await client.pause_backfill(backfill_id, is_paused=is_paused)
    return Reply(backfill, f"Backfill {backfill_id} is {_state(backfill)}")


def _state(backfill: rest.backfills.Backfill) -> str:
    if backfill.cancelled_by is not None:
        return f"cancelled by {backfill.cancelled_by}"
    return "over" if backfill.ended_at else "paused" if backfill.is_paused else "active"


def _print_dates(dates: list[rest.backfills.BackfillDate]) -> None:
    whole_dates: dict[str, Cell[rest.backfills.BackfillDate]] = {
        "logical_date": lambda planned: "" if planned.logical_date is None else local_date(planned.logical_date)
    }
    print_records(dates, rest.backfills.BackfillDate, cells=whole_dates, empty="No dates.")
