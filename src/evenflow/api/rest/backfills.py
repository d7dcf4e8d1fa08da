"""Backfills: runs of past dates, asked for all at once and made as there is room."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from itertools import islice, takewhile
from typing import Annotated

from fastapi import Query, Request, Response

from evenflow.api.partitions import Partitioned, list_partitions, partitioned
from evenflow.api.refusals import Refused
from evenflow.api.rest.context import Actor, Connection, InContext, InScope, InSlice
from evenflow.api.rest.dags import current_version
from evenflow.api.rest.once import Repeatable, answered_once
from evenflow.api.rest.paging import part_of
from evenflow.api.rest.routes import Routes
from evenflow.contracts.rest.assets import AssetPartition
from evenflow.contracts.rest.backfills import Backfill, BackfillChange, BackfillDate, BackfillPlan, BackfillRequest, Reprocess
from evenflow.contracts.rest.queries import BackfillQuery
from evenflow.contracts.rest.record import Page
from evenflow.core.forecast import TimetableRun
from evenflow.core.limits import BACKFILL_RUNS
from evenflow.core.model import DagSpec, Schedule
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import ScopedBy
from evenflow.core.timetable import TICKING, describe, runs_between
from evenflow.errors import DagNotFound
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.serving import backfills, events
from evenflow.store.serving.backfills import PlannedRun

routes = Routes("Backfills")

_AGAIN = {Reprocess.NONE: (), Reprocess.FAILED: ("failed",), Reprocess.COMPLETED: ("failed", "success")}


@routes.post("/dags/{dag_id}/backfills", Role.AUTHOR, status_code=201)
@answered_once
async def create_backfill(
    conn: Connection, within: InContext, actor: Actor, dag_id: str, request: BackfillRequest, response: Response, once: Repeatable
) -> BackfillPlan:
    """Asks for the runs of past dates. With `dry_run` it only says which."""
    current = await current_version(conn, dag_id)
    spec = DagSpec.from_json(current.spec)
    if not current.is_active:
        raise Refused(409, "dag_retired", f"The DAG {dag_id!r} cannot run: {current.file} does not define it any more.")
    if request.reverse and any(task.depends_on_past for task in spec.tasks):
        raise Refused(422, "bad_value", f"Tasks of the DAG {dag_id!r} depend on the run before.", hint="Leave --reverse out.")
    of = None if request.partitions_of is None else await _partitions_made(conn, spec, request.partitions_of)
    key = _first_key(spec, of, request)
    judged = await within.judge.params(spec.params, {**request.params, **key})
    params = {name: value for name, value in judged.items() if name not in key}
    if request.dates is None:
        planned = await _planned_keys(conn, of, request.reprocess)
    else:
        planned = await _planned(conn, spec, request.dates, request.reprocess, of)
    if request.reverse:
        planned.reverse()
    plan = BackfillPlan(backfill_id=None, runs=[_shown(each) for each in planned])
    if request.dry_run:
        response.status_code = 200
        return plan
    async with once.recorded(conn, actor, "backfill.create", dag_id, dates=len(planned)) as detail:
        plan.backfill_id = detail["backfill_id"] = await backfills.insert(conn, dag_id, request, params, planned, actor=actor)
        if plan.backfill_id is None:
            raise Refused(
                409,
                "backfill_exists",
                f"A backfill of the DAG {dag_id!r} is not over yet.",
                hint=f"See it with: evenflow backfill list {dag_id}",
            )
        return await once.keep(conn, plan)


async def _partitions_made(conn: AsyncConn, spec: DagSpec, asset: str) -> Partitioned:
    """Raises :class:`Refused` for an asset that no task of the DAG makes."""
    if not any(asset in task.outlets for task in spec.tasks):
        raise Refused(
            422,
            "bad_value",
            f"No task of the DAG {spec.dag_id!r} makes the asset {asset!r}.",
            hint="Name one that has it among its outlets.",
        )
    return await partitioned(conn, asset)


def _first_key(spec: DagSpec, of: Partitioned | None, request: BackfillRequest) -> dict[str, str]:
    """A parameter as one of the runs will have it, so that the parameters are judged as a whole."""
    if of is None or not of.partitions.keys:
        return {}
    if request.from_date is not None:
        raise Refused(422, "bad_value", f"The partitions of {of.asset!r} are keys, not times.", hint="Leave the dates out.")
    if of.partitions.param in request.params:
        raise Refused(
            422, "bad_value", f"The parameter {of.partitions.param!r} is the partition, which differs.", hint="Leave it out."
        )
    if of.partitions.param not in spec.params:
        raise Refused(
            422,
            "bad_value",
            f"The partition is the parameter {of.partitions.param!r}, which the DAG {spec.dag_id!r} has not.",
            hint="Add it.",
        )
    return {of.partitions.param: of.partitions.keys[0]}


async def _planned_keys(conn: AsyncConn, of: Partitioned | None, reprocess: Reprocess) -> list[PlannedRun]:
    """A run for each key, or for those that are missing."""
    if of is None or not of.partitions.keys:
        raise Refused(422, "bad_value", "The partitions are times.", hint="Say the first and the last date, too: --from and --to.")
    found = await list_partitions(conn, of, None, None)
    return [PlannedRun(None, each.partition, _there(each, reprocess)) for each in found]


def _there(partition: AssetPartition, reprocess: Reprocess) -> str | None:
    """Why it needs no run."""
    if not partition.is_done or reprocess is Reprocess.COMPLETED:
        return None
    return f"is there since {partition.at:%Y-%m-%d %H:%M}"


def _shown(planned: PlannedRun) -> BackfillDate:
    run = planned.run
    return BackfillDate(
        logical_date=run and run.logical_date,
        data_interval_start=run and run.data_interval_start,
        data_interval_end=run and run.data_interval_end,
        partition=planned.partition,
        passed_over=planned.passed_over,
        run_id=None,
        state=None,
    )


def _no_dates(schedule: Schedule) -> str:
    if schedule.kind == "code":
        return "is code of your own, which tells its next runs alone, so its past dates are not known here"
    return "names no times, so it has no past dates"


async def _planned(
    conn: AsyncConn, spec: DagSpec, dates: tuple[datetime, datetime], reprocess: Reprocess, of: Partitioned | None
) -> list[PlannedRun]:
    """The runs of dates, the oldest first, each with the reason why it is passed over, if it is."""
    if spec.schedule.kind not in TICKING:
        raise Refused(
            422,
            "bad_value",
            f"The schedule of the DAG {spec.dag_id!r} ({describe(spec.schedule) or 'by hand'}) {_no_dates(spec.schedule)}.",
            hint=f"Run it for one with: evenflow runs trigger {spec.dag_id} --logical-date DATE",
        )
    runs = await asyncio.to_thread(_past_runs, spec, dates)  # a hundred expressions have as many dates to be found each time
    if len(runs) > BACKFILL_RUNS:
        raise Refused(422, "too_large", f"There are more than {BACKFILL_RUNS:,} dates in this range.", hint="Take a part of it.")
    if not runs:
        raise Refused(422, "bad_value", f"The schedule of the DAG {spec.dag_id!r} has no date in this range that has passed.")
    existing = await backfills.find_existing(
        conn, dag_id=spec.dag_id, from_date=runs[0].logical_date, to_date=runs[-1].logical_date
    )
    if of is None:
        return [PlannedRun(run, None, _reason(existing.get(run.logical_date), reprocess)) for run in runs]
    rows = await list_partitions(conn, of, runs[0].logical_date, runs[-1].logical_date)
    known = {each.partition: each for each in rows}
    found = []
    for run in runs:
        partition = of.partitions.of(run.logical_date)
        busy = _reason(existing.get(run.logical_date), Reprocess.COMPLETED)
        found.append(PlannedRun(run, partition, busy or _there(known[partition], reprocess)))
    return found


def _past_runs(spec: DagSpec, dates: tuple[datetime, datetime]) -> list[TimetableRun]:
    """Those of the range that have passed, and one more than there may be at most."""
    anchor = None if spec.start_date is None else datetime.fromisoformat(spec.start_date)
    now, found = datetime.now(UTC), runs_between(spec.schedule, anchor, *dates)
    return list(islice(takewhile(lambda run: run.run_after <= now, found), BACKFILL_RUNS + 1))


def _reason(existing: tuple[str, str] | None, reprocess: Reprocess) -> str | None:
    if existing is None or existing[1] in _AGAIN[reprocess]:
        return None
    return f"has the run {existing[0]}, which is {existing[1]}"


@routes.get("/backfills", Role.VIEWER, ScopedBy.ANSWER)
async def list_backfills(
    http: Request, conn: Connection, scope: InScope, query: Annotated[BackfillQuery, Query()]
) -> Page[Backfill]:
    """Backfills, the newest first, and how far they are."""
    part = part_of(http, query, int)
    rows = await backfills.list_all(conn, dag_id=query.dag_id, scope=scope, limit=part.limit, after=part.after)
    return part.page(Page[Backfill], rows)


@routes.get("/backfills/{backfill_id}", Role.VIEWER, ScopedBy.ANSWER)
async def get_backfill(conn: Connection, scope: InScope, backfill_id: int) -> Backfill:
    """One backfill, and how far it is."""
    return Backfill.model_validate(await _found(conn, backfill_id, scope))


@routes.get("/backfills/{backfill_id}/runs", Role.VIEWER, ScopedBy.ANSWER)
async def list_backfill_runs(
    http: Request, conn: Connection, scope: InScope, query: InSlice, backfill_id: int
) -> Page[BackfillDate]:
    """The dates of a backfill in their order, each with its run."""
    await _found(conn, backfill_id, scope)
    part = part_of(http, query, int)
    rows = await backfills.list_runs(conn, backfill_id, limit=part.limit, after=part.after)
    return part.page(Page[BackfillDate], rows)


@routes.patch("/backfills/{backfill_id}", Role.AUTHOR, ScopedBy.ANSWER)
async def change_backfill(conn: Connection, actor: Actor, scope: InScope, backfill_id: int, change: BackfillChange) -> Backfill:
    """Pauses or resumes a backfill. A paused backfill makes no runs; the runs that it has made continue."""
    dag_id = await _open(conn, backfill_id, scope)
    action = "backfill.pause" if change.is_paused else "backfill.resume"
    async with events.recorded(conn, actor, action, dag_id, backfill_id=backfill_id):
        await backfills.set_paused(conn, backfill_id, is_paused=change.is_paused)
    return Backfill.model_validate(await _found(conn, backfill_id, scope))


@routes.post("/backfills/{backfill_id}/cancel", Role.AUTHOR, ScopedBy.ANSWER, status_code=202)
async def cancel_backfill(conn: Connection, actor: Actor, scope: InScope, backfill_id: int) -> Backfill:
    """Ends a backfill: it makes no further runs, its runs that have not begun are cancelled, and its running runs continue."""
    dag_id = await _open(conn, backfill_id, scope)
    async with events.recorded(conn, actor, "backfill.cancel", dag_id, backfill_id=backfill_id):
        await backfills.cancel(conn, backfill_id, actor=actor)
    return Backfill.model_validate(await _found(conn, backfill_id, scope))


async def _found(conn: AsyncConn, backfill_id: int, scope: str | None) -> Row:
    rows = await backfills.list_all(conn, backfill_id=backfill_id, scope=scope)
    if not rows:
        raise DagNotFound(f"There is no backfill {backfill_id}.", hint="To see all, type: evenflow backfill list")
    return rows[0]


async def _open(conn: AsyncConn, backfill_id: int, scope: str | None) -> str:
    """Its DAG. Raises :class:`Refused` for one that is over."""
    found = await _found(conn, backfill_id, scope)
    if found["ended_at"] is not None:
        raise Refused(409, "backfill_ended", f"The backfill {backfill_id} is over.")
    return str(found["dag_id"])
