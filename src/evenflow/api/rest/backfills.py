"""Backfills: runs of past dates, asked for all at once and made as there is room."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from itertools import islice, takewhile
from typing import Annotated

import msgspec
from fastapi import Query, Response

from evenflow.api.refusals import Refused
from evenflow.api.rest.context import Connection, InContext, InSlice, Operator
from evenflow.api.rest.dags import current_version
from evenflow.api.rest.routes import Routes
from evenflow.contracts.rest.backfills import Backfill, BackfillChange, BackfillDate, BackfillPlan, BackfillRequest, Reprocess
from evenflow.contracts.rest.queries import BackfillQuery
from evenflow.contracts.rest.record import Page
from evenflow.core.limits import BACKFILL_RUNS
from evenflow.core.model import DagSpec
from evenflow.core.timetable import TICKING, TimetableRun, describe, runs_between
from evenflow.errors import DagNotFound
from evenflow.store.db.connect import Conn, Row
from evenflow.store.serving import backfills, events

routes = Routes("Backfills")

_AGAIN = {Reprocess.NONE: (), Reprocess.FAILED: ("failed",), Reprocess.COMPLETED: ("failed", "success")}


@routes.post("/dags/{dag_id}/backfills", status_code=201)
async def create_backfill(
    conn: Connection, within: InContext, operator: Operator, dag_id: str, request: BackfillRequest, response: Response
) -> BackfillPlan:
    """Asks for the runs of past dates. With `dry_run` it only says which."""
    current = await current_version(conn, dag_id)
    spec = DagSpec.from_json(current.spec)
    if not current.is_active:
        raise Refused(409, "dag_retired", f"The DAG {dag_id!r} cannot run: {current.file} does not define it any more.")
    if request.reverse and any(task.depends_on_past for task in spec.tasks):
        raise Refused(422, "bad_value", f"Tasks of the DAG {dag_id!r} depend on the run before. Leave --reverse out.")
    params = await within.judge.params(spec.params, request.params)
    planned = await _planned(conn, spec, request)
    plan = BackfillPlan(
        backfill_id=None,
        runs=[BackfillDate(**run._asdict(), passed_over=reason, run_id=None, state=None) for run, reason in planned],
    )
    if request.dry_run:
        response.status_code = 200
        return plan
    backfill = backfills.NewBackfill(
        dag_id,
        request.from_date,
        request.to_date,
        request.reverse,
        request.reprocess,
        request.max_active_runs,
        msgspec.json.encode(params).decode(),
        request.priority,
        operator,
    )
    async with events.recorded(conn, operator, "backfill.create", dag_id, dates=len(planned)) as detail:
        plan.backfill_id = detail["backfill_id"] = await backfills.insert(conn, backfill, planned)
        if plan.backfill_id is None:
            raise Refused(
                409,
                "backfill_exists",
                f"A backfill of the DAG {dag_id!r} is not over yet. See it with: evenflow backfill list {dag_id}",
            )
    return plan


async def _planned(conn: Conn, spec: DagSpec, request: BackfillRequest) -> list[tuple[TimetableRun, str | None]]:
    """The runs in their order, each with the reason why it is passed over, if it is."""
    if spec.schedule.kind not in TICKING:
        raise Refused(
            422,
            "bad_value",
            f"The schedule of the DAG {spec.dag_id!r} ({describe(spec.schedule) or 'by hand'}) names no times, so it has no past "
            f"dates. Run it for one with: evenflow runs trigger {spec.dag_id} --logical-date DATE",
        )
    runs = await asyncio.to_thread(_past_runs, spec, request)  # a hundred expressions have as many dates to be found each time
    if len(runs) > BACKFILL_RUNS:
        raise Refused(422, "too_large", f"There are more than {BACKFILL_RUNS:,} dates in this range. Take a part of it.")
    if not runs:
        raise Refused(422, "bad_value", f"The schedule of the DAG {spec.dag_id!r} has no date in this range that has passed.")
    existing = await backfills.find_existing(
        conn, dag_id=spec.dag_id, from_date=runs[0].logical_date, to_date=runs[-1].logical_date
    )
    found = [(run, _reason(existing.get(run.logical_date), request.reprocess)) for run in runs]
    return found[::-1] if request.reverse else found


def _past_runs(spec: DagSpec, request: BackfillRequest) -> list[TimetableRun]:
    """Those of the range that have passed, and one more than there may be at most."""
    anchor = None if spec.start_date is None else datetime.fromisoformat(spec.start_date)
    now, found = datetime.now(UTC), runs_between(spec.schedule, anchor, request.from_date, request.to_date)
    return list(islice(takewhile(lambda run: run.run_after <= now, found), BACKFILL_RUNS + 1))


def _reason(existing: tuple[str, str] | None, reprocess: Reprocess) -> str | None:
    if existing is None or existing[1] in _AGAIN[reprocess]:
        return None
    return f"has the run {existing[0]}, which is {existing[1]}"


@routes.get("/backfills")
async def list_backfills(conn: Connection, query: Annotated[BackfillQuery, Query()]) -> Page[Backfill]:
    """Backfills, the newest first, and how far they are."""
    rows = await backfills.list_all(conn, dag_id=query.dag_id, limit=query.read_limit, offset=query.offset)
    return query.page(Page[Backfill], rows)


@routes.get("/backfills/{backfill_id}")
async def get_backfill(conn: Connection, backfill_id: int) -> Backfill:
    """One backfill, and how far it is."""
    return Backfill.model_validate(await _found(conn, backfill_id))


@routes.get("/backfills/{backfill_id}/runs")
async def list_backfill_runs(conn: Connection, part: InSlice, backfill_id: int) -> Page[BackfillDate]:
    """The dates of a backfill in their order, each with its run."""
    await _found(conn, backfill_id)
    return part.page(Page[BackfillDate], await backfills.list_runs(conn, backfill_id, limit=part.read_limit, offset=part.offset))


@routes.patch("/backfills/{backfill_id}")
async def change_backfill(conn: Connection, operator: Operator, backfill_id: int, change: BackfillChange) -> Backfill:
    """Pauses or resumes a backfill. Paused, it makes no runs; those that it has made go on."""
    dag_id = await _open(conn, backfill_id)
    action = "backfill.pause" if change.is_paused else "backfill.resume"
    async with events.recorded(conn, operator, action, dag_id, backfill_id=backfill_id):
        await backfills.set_paused(conn, backfill_id, is_paused=change.is_paused)
    return Backfill.model_validate(await _found(conn, backfill_id))


@routes.post("/backfills/{backfill_id}/cancel", status_code=202)
async def cancel_backfill(conn: Connection, operator: Operator, backfill_id: int) -> Backfill:
    """Ends a backfill: it makes no more runs, those that have not begun are cancelled, those that run go on."""
    dag_id = await _open(conn, backfill_id)
    async with events.recorded(conn, operator, "backfill.cancel", dag_id, backfill_id=backfill_id):
        await backfills.cancel(conn, backfill_id, actor=operator)
    return Backfill.model_validate(await _found(conn, backfill_id))


async def _found(conn: Conn, backfill_id: int) -> Row:
    rows = await backfills.list_all(conn, backfill_id=backfill_id)
    if not rows:
        raise DagNotFound(f"There is no backfill {backfill_id}. To see all, type: evenflow backfill list")
    return rows[0]


async def _open(conn: Conn, backfill_id: int) -> str:
    """Its DAG. Raises :class:`Refused` for one that is over."""
    found = await _found(conn, backfill_id)
    if found["ended_at"] is not None:
        raise Refused(409, "backfill_ended", f"The backfill {backfill_id} is over.")
    return str(found["dag_id"])
