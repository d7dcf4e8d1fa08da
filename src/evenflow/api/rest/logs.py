"""Logs of tries, also while they run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated
from urllib.parse import quote

from fastapi import Query, Response
from fastapi.responses import StreamingResponse

from evenflow.api import limits
from evenflow.api.logs.store import LogName, LogPart
from evenflow.api.rest.context import ApiContext, InContext
from evenflow.api.rest.routes import Routes
from evenflow.contracts.rest.queries import LogQuery, TryQuery
from evenflow.core.people.roles import Role
from evenflow.core.states import HOLDING, TaskState
from evenflow.errors import DagNotFound
from evenflow.store.serving import views

routes = Routes("Logs")

LOG_GROWS = HOLDING | {TaskState.NONE, TaskState.SCHEDULED, TaskState.DEFERRED, TaskState.UP_FOR_RESCHEDULE}
LOG_ENDED = frozenset(TaskState) - LOG_GROWS


@routes.get(
    "/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/logs",
    Role.VIEWER,
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The text after `offset`."}},
)
async def read_log(
    within: InContext,
    dag_id: str,
    run_id: str,
    task_id: str,
    query: Annotated[LogQuery, Query()],
) -> Response:
    """A part of a try's log. The header `X-Log-Offset` says where to continue, `X-Log-Size` how many bytes there are, and
    `X-Log-Complete` that nothing follows.
    """
    clock = asyncio.get_running_loop().time
    deadline = clock() + min(query.wait_s, limits.LOG_WAIT)
    begun = 0  # bytes of a character whose other bytes are awaited
    while True:
        shown, over = await _find_try(within, dag_id, run_id, task_id, query.map_index, query.try_number)
        name = LogName(dag_id, run_id, task_id, query.map_index, shown)
        patience = 0.0 if over else min(deadline - clock(), limits.LOG_STATE_CHECK)
        text = await within.logs.wait(name, query.offset, patience, begun)
        complete = over and text.at_end
        data = text.data if complete else _whole_characters(text.data)
        if data or over or clock() >= deadline:
            break
        begun = len(text.data)
    return Response(
        data,
        media_type="text/plain; charset=utf-8",
        headers={
            "X-Log-Offset": str(query.offset + len(data)),
            "X-Log-Size": str(text.size),
            "X-Log-Complete": "true" if complete else "false",
        },
    )


@routes.get(
    "/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/logs/file",
    Role.VIEWER,
    response_class=StreamingResponse,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "All that is stored by now."}},
)
async def download_log(
    within: InContext,
    dag_id: str,
    run_id: str,
    task_id: str,
    query: Annotated[TryQuery, Query()],
) -> StreamingResponse:
    """A try's log as a file, as far as it is stored."""
    shown, _ = await _find_try(within, dag_id, run_id, task_id, query.map_index, query.try_number)
    name = LogName(dag_id, run_id, task_id, query.map_index, shown)
    first = await within.logs.read(name, 0)  # before the answer begins: a storage that is away is refused with its cure
    of_instance = [] if query.map_index < 0 else [str(query.map_index)]
    file = quote("-".join([dag_id, run_id, task_id, *of_instance, f"try-{shown}"]) + ".log", safe="")
    return StreamingResponse(
        _parts(within, name, first),
        media_type="text/plain; charset=utf-8",
        headers={"Content-Length": str(first.size), "Content-Disposition": f"attachment; filename*=UTF-8''{file}"},
    )


async def _parts(within: ApiContext, name: LogName, part: LogPart) -> AsyncIterator[bytes]:
    """Yields the log that ``part`` begins, up to its end of now: what it grows by is not in the length that was told."""
    size = part.size
    while part.data:
        yield part.data[: size - part.next_offset + len(part.data)]
        if part.next_offset >= size:
            return
        part = await within.logs.read(name, part.next_offset)


async def _find_try(
    within: InContext, dag_id: str, run_id: str, task_id: str, map_index: int, try_number: int | None
) -> tuple[int, bool]:
    """The number of the try that is meant, and whether its log will not grow any more."""
    async with within.pool.connection() as conn:
        instance = await views.find_instance(conn, dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=map_index)
        hint = await views.similar_task(conn, dag_id, task_id) if instance is None else ""
    if instance is None:
        where = f"in a run {run_id!r} of DAG {dag_id!r}"
        raise DagNotFound(f"There is no task {task_id!r} {where}.", hint=f"{hint} See: evenflow runs list {dag_id}")
    newest = instance.try_number or 1
    if try_number is not None and try_number > newest:
        tries = f"has had {newest} of them" if instance.try_number else "has not begun"
        raise DagNotFound(f"There is no try {try_number} of the task {task_id!r}: it {tries}.")
    shown = try_number or newest
    return shown, shown < newest or (instance.state is not None and instance.state in LOG_ENDED)


def _whole_characters(data: bytes) -> bytes:
    """Removes an incomplete character at the end, whose other bytes are still to come."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0xC0:  # the first byte of a character of 2 to 4 bytes
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if length > back else data
        if byte < 0x80:
            break
    return data
