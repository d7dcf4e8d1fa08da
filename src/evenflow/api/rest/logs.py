"""Logs of tries, also while they run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated
from urllib.parse import quote

from fastapi import Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from evenflow.api import limits
from evenflow.api.logs.growth import find_try, whole_characters
from evenflow.api.logs.store import LogName, LogPart
from evenflow.api.rest.context import ApiContext, InContext, InScope
from evenflow.api.rest.routes import Routes
from evenflow.api.rest.streaming import streamed
from evenflow.api.streams.logs import place_of
from evenflow.contracts.rest.live import LogText
from evenflow.contracts.rest.queries import LogQuery, LogStreamQuery, TryQuery
from evenflow.core.people.roles import Role

routes = Routes("Logs")


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
        async with within.pool.connection() as conn:
            shown, over = await find_try(conn, dag_id, run_id, task_id, query.map_index, query.try_number)
        name = LogName(dag_id, run_id, task_id, query.map_index, shown)
        patience = 0.0 if over else min(deadline - clock(), limits.LOG_STATE_CHECK)
        text = await within.logs.wait(name, query.offset, patience, begun)
        complete = over and text.at_end
        data = text.data if complete else whole_characters(text.data)
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
    "/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/logs/live",
    Role.VIEWER,
    response_class=StreamingResponse,
    responses={200: {"model": LogText, "description": "Server-sent events `log`, each with such a record; it ends with the log."}},
)
async def stream_log(
    within: InContext,
    request: Request,
    dag_id: str,
    run_id: str,
    task_id: str,
    scope: InScope,
    query: Annotated[LogStreamQuery, Query()],
    last_event_id: Annotated[
        str | None, Header(description="Of the last event that was heard: the log of its try goes on behind it.")
    ] = None,
) -> StreamingResponse:
    """Tells a try's log as it grows. An id has the try, and the bytes that were heard."""
    heard = None if last_event_id is None else place_of(last_event_id)
    wanted = query.try_number if heard is None else heard.try_number
    async with within.pool.connection() as conn:
        shown, _ = await find_try(conn, dag_id, run_id, task_id, query.map_index, wanted)
    name = LogName(dag_id, run_id, task_id, query.map_index, shown)
    return streamed(within, request, within.streams.logs.stream(name, query.offset if heard is None else heard.offset, scope))


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
    async with within.pool.connection() as conn:
        shown, _ = await find_try(conn, dag_id, run_id, task_id, query.map_index, query.try_number)
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
