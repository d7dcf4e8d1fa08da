"""What tasks ask people, and their answers. An answer is the event that its task waits for: it is put into the inbox, and the task
resumes like any deferred task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, Query, Request

from evenflow.api import deferrals, triggers
from evenflow.api.refusals import Refused
from evenflow.api.rest.context import ApiContext, Connection, InContext, InScope, asker
from evenflow.api.rest.dags import shown_params
from evenflow.api.rest.paging import part_of
from evenflow.api.rest.routes import Routes
from evenflow.api.rest.runs import found_run
from evenflow.api.tokens import Caller
from evenflow.contracts.rest.approvals import Answered, AnswerRequest, Approval
from evenflow.contracts.rest.queries import ApprovalQuery, InstanceQuery
from evenflow.contracts.rest.record import Page
from evenflow.core.likeness import did_you_mean
from evenflow.core.model import instance_name
from evenflow.core.people.approvals import ROLE, ApprovalAnswer, ApprovalQuestion, answerers, may_answer, words_of
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import ScopedBy
from evenflow.errors import ParamError, SecretsError, XComError
from evenflow.masker import Masker
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.db.notify import INBOX, wake_async
from evenflow.store.serving import approvals, events, views

routes = Routes("Tasks")

ByPerson = Annotated[Caller, Depends(asker)]


@routes.get("/approvals", Role.VIEWER, ScopedBy.ANSWER)
async def list_approvals(
    within: InContext, http: Request, conn: Connection, asker: ByPerson, scope: InScope, query: Annotated[ApprovalQuery, Query()]
) -> Page[Approval]:
    """What waits for people, the longest waiting first."""
    wanted: dict[str, Any] = {"dag_id": query.dag_id, "run_id": query.run_id, "scope": scope}
    part = part_of(http, query, datetime, int)
    rows = await approvals.list_waiting(conn, **wanted, limit=part.limit, after=part.after)
    shown = await asyncio.to_thread(lambda: [_shown(within, row, asker) for row in rows])  # to open and mask many takes long
    return part.page(Page[Approval], shown)


@routes.get("/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/approval", Role.VIEWER)
async def get_approval(
    within: InContext,
    conn: Connection,
    asker: ByPerson,
    dag_id: str,
    run_id: str,
    task_id: str,
    query: Annotated[InstanceQuery, Query()],
) -> Approval:
    """What a task asks, while it waits for the answer."""
    run = await found_run(conn, dag_id, run_id)
    row = await _waiting(conn, dag_id, run_id, task_id, query.map_index)
    if row is None:
        raise await _not_asked(conn, run["run_key"], dag_id, run_id, task_id, query.map_index)
    return Approval.model_validate(_shown(within, row, asker))


@routes.post("/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/answer", Role.VIEWER)
async def answer(within: InContext, asker: ByPerson, dag_id: str, run_id: str, task_id: str, request: AnswerRequest) -> Answered:
    """Answers a task's question; the question says which people may. The first answer counts: a second one is refused and names the
    person who was first.
    """
    async with within.pool.connection() as conn:
        run = await found_run(conn, dag_id, run_id)
        row = await _waiting(conn, dag_id, run_id, task_id, request.map_index)
        if row is None:
            raise await _not_asked(conn, run["run_key"], dag_id, run_id, task_id, request.map_index)
    question, _ = _question(within, row)
    name = instance_name(task_id, request.map_index)
    if not may_answer(question.who, asker.name, asker.role):
        whom = ", ".join(answerers(question.who))
        raise Refused(403, "forbidden", f"Only {whom} may answer task {name!r}; you are {asker.name!r}, {ROLE}{asker.role}.")
    choice = question.checked_choice(request.choice)
    words = words_of(choice)
    values = await _values(within, question, request.values)  # which may take seconds, so no connection waits for it
    async with within.pool.connection() as conn:
        async with events.recorded(conn, asker.name, "task.answer", f"{dag_id}/{run_id}", task=name, choice=words):
            if await approvals.lock_run(conn, dag_id, run_id):
                raise Refused(
                    409, "changing", f"Somebody has just cleared, marked or cancelled in {dag_id}/{run_id}.", hint="Look again."
                )
            now = await _waiting(conn, dag_id, run_id, task_id, request.map_index)
            if now is None or now["epoch"] != row["epoch"]:
                raise await _not_asked(conn, row["run_key"], dag_id, run_id, task_id, request.map_index)
            stored = await approvals.insert_answer(conn, row, choice=words, answered_by=asker.name)
            at = stored["answered_at"].isoformat()
            said = ApprovalAnswer(choice=choice, values=values, answered_by=asker.name, answered_at=at)
            await triggers.answer(conn, within.vault, row, said)
        await wake_async(conn, [INBOX])
    return Answered.model_validate({**row, **stored, "choice": choice, "answered_by": asker.name})


async def _waiting(conn: AsyncConn, dag_id: str, run_id: str, task_id: str, map_index: int) -> Row | None:
    rows = await approvals.list_waiting(conn, dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=map_index)
    return rows[0] if rows else None


async def _not_asked(conn: AsyncConn, run_key: int, dag_id: str, run_id: str, task_id: str, map_index: int) -> Refused:
    """Returns why a task cannot be answered: another person was first, or it asks no question."""
    name = instance_name(task_id, map_index)
    found = await views.find_instance(conn, dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=map_index)
    if found is None:
        hint = await views.similar_task(conn, dag_id, task_id)
        return Refused(404, "not_found", f"There is no task {name!r} in run {run_id!r} of DAG {dag_id!r}.", hint=hint)
    first = await approvals.find_answer(conn, run_key, task_id=task_id, map_index=map_index)
    if first is not None:
        at = f"{first['answered_at'].astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        return Refused(409, "answered", f"{first['answered_by']} answered {first['choice']!r} to task {name!r} first, at {at}.")
    state = found.state or "none"
    return Refused(
        409,
        "not_asked",
        f"Task {name!r} of {dag_id}/{run_id} asks nobody now: it is {state}.",
        hint="To see what waits for people: evenflow approvals list",
    )


def _shown(within: ApiContext, row: Row, asker: Caller) -> dict[str, Any]:
    """One that cannot be read must not hide the others."""
    try:
        question, masker = _question(within, row)
    except (SecretsError, XComError) as error:
        nothing = {"body": "", "choices": [], "params": [], "who": [], "may_answer": False, "default": None, "multiple": False}
        return {**row, **nothing, "subject": "(cannot be read)", "problem": str(error)}
    texts = {"subject": question.subject, "body": question.body, "params": shown_params(question.params)}
    return {
        **row,
        **masker.mask_value(texts),
        "choices": question.choices,
        "who": answerers(question.who),
        "may_answer": may_answer(question.who, asker.name, asker.role),
        "default": question.default,
        "multiple": question.multiple,
        "problem": None,
    }


def _question(within: ApiContext, row: Row) -> tuple[ApprovalQuestion, Masker]:
    """With what takes the secrets out of it that its try was given. Raises :class:`SecretsError` when no key opens it."""
    what = f"What task {row['task_id']!r} of run {row['run_id']!r} of DAG {row['dag_id']!r} asks"
    defer = deferrals.opened_deferral(within.vault, row["run_key"], what, row["sealed"])
    masker = Masker()
    masker.add(defer.secrets)
    return deferrals.question_of(defer), masker


async def _values(within: ApiContext, question: ApprovalQuestion, given: Mapping[str, Any]) -> dict[str, Any]:
    """Of all fields of the form. Raises :class:`ParamError` for the first that does not fit."""
    for name in given:
        if name not in question.params:
            has = f"It has: {', '.join(sorted(question.params))}." if question.params else "It has none."
            raise ParamError(f"The form has no field {name!r}.", hint=f"{did_you_mean(name, question.params)} {has}")
    return await within.judge.params(question.params, given)
