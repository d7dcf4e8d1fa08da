"""Which states of service hold a task instance back."""

from __future__ import annotations

from collections.abc import Callable

from evenflow.core.callbacks import CALLBACK_DAG
from evenflow.core.service_states import ServiceKind, ServiceState
from evenflow.core.why import OutOfService, WhyNot
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving.states import list_closing


async def holding_runs(conn: AsyncConn, dag_id: str, *, is_paused: bool) -> list[WhyNot]:
    """Why no run of the DAG begins, except for its pause."""
    if dag_id == CALLBACK_DAG:
        return []
    found = await _found(conn, dag_id, None, lambda _, state: not state.begins_runs())
    return [reason for reason in found if not (is_paused and reason.what == ServiceKind.DAG)]


async def holding_starts(conn: AsyncConn, pool: str, queue: str) -> list[WhyNot]:
    """Why nothing starts for the first time in this pool and on this queue."""
    return [*await _found(conn, None, (pool, queue), lambda kind, state: not state.starts_tasks(kind))]


async def holding_tries(conn: AsyncConn, dag_id: str, pool: str, queue: str) -> list[WhyNot]:
    """Why no worker gets what it is to run, also resumes."""
    return [*await _found(conn, dag_id, (pool, queue), lambda _, state: not state.resumes())]


async def _found(
    conn: AsyncConn, dag_id: str | None, place: tuple[str, str] | None, holds: Callable[[ServiceKind, ServiceState], bool]
) -> list[OutOfService]:
    objects = [(ServiceKind.DAG, dag_id)] if dag_id is not None else []
    if place is not None:
        objects += [(ServiceKind.POOL, place[0]), (ServiceKind.QUEUE, place[1])]
    return [
        OutOfService(what=row["kind"], name=row["name"], state=row["state"], since=row["since"], actor=row["actor"])
        for row in await list_closing(conn, objects)
        if holds(ServiceKind(row["kind"]), ServiceState(row["state"]))
    ]
