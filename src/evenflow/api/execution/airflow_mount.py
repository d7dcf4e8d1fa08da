"""Airflow's Task Execution API over HTTP, for clients of its SDK without a worker of Evenflow's beside them, such as pods of images
that have Airflow alone.

A client shows the token of one try. A launcher gives a pod a token with which a worker may register that claims this one try; the
answer to the client's first request brings the try's own token, as Airflow's server does with those of its workloads.
"""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from typing import NamedTuple

import msgspec
from starlette.types import Receive, Scope, Send

from evenflow.api import limits
from evenflow.api.bodies import bearer, header, read_body
from evenflow.api.claims import Claims
from evenflow.api.execution.airflow_channel import HandlerChannel, TryHandlers
from evenflow.api.execution.airflow_clients import CLIENT, AlreadyRuns, ClientProcess, SdkClients
from evenflow.api.execution.endpoint import Call, kind_of, try_over
from evenflow.api.refusals import UNREAD, Forbidden, Refused, Unauthorized, refusal
from evenflow.api.tokens import FleetToken, Tokens, TryToken
from evenflow.api.versions import Versions
from evenflow.contracts.airflow.answers import ExecutionAnswer, refused
from evenflow.contracts.airflow.dates import SPOKEN, not_spoken
from evenflow.contracts.airflow.handler import ExecutionApi
from evenflow.contracts.airflow.of_try import AirflowTry, instance_id
from evenflow.core.ending import Ending
from evenflow.core.limits import MAX_XCOM_BYTES
from evenflow.sdk.trying.runner import TryContext
from evenflow.store.serving import dispatch
from evenflow.wire.messages import AIRFLOW_API
from evenflow.wire.storage_threads import StorageThreads

_NEW_TOKEN = "refreshed-api-token"
_LOOKS = 1_000  # how often a task was rescheduled is not known: with this, a sensor asks when it looked first


class _TaskRequest(NamedTuple):
    method: str
    path: str  # quoted, below the API
    query: str
    body: bytes
    date: str


class TaskExecutionEndpoint:
    """An ASGI application."""

    def __init__(self, tokens: Tokens, versions: Versions, claims: Claims, handlers: TryHandlers, clients: SdkClients) -> None:
        self._tokens, self._versions, self._claims = tokens, versions, claims
        self._handlers, self._clients, self._pool = handlers, clients, handlers.pool
        self._threads = StorageThreads(limits.AIRFLOW_REQUESTS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._answer(scope, receive)
        except AlreadyRuns as error:
            answer = refused(409, "invalid_state", str(error), previous_state="running")
        except Exception as error:
            told = refusal(error)
            answer = refused(told.status, told.code, told.message)
            if told.status in UNREAD:
                answer.heads["connection"] = "close"
        heads = [(name.encode("ascii"), value.encode("latin-1")) for name, value in answer.heads.items()]
        size = (b"content-length", b"%d" % len(answer.body))
        await send({"type": "http.response.start", "status": answer.status, "headers": [*heads, size]})
        await send({"type": "http.response.body", "body": answer.body})

    async def _answer(self, scope: Scope, receive: Receive) -> ExecutionAnswer:
        text = bearer(scope)
        if text is None:
            raise Unauthorized("The request has no token (header Authorization: Bearer ...).")
        token = await self._tokens.admit(text)
        if not isinstance(token, TryToken) and not (isinstance(token, FleetToken) and token.epoch):
            raise Forbidden(f"A token of kind {kind_of(token)!r} may not do this; it takes that of one try.")
        request = _TaskRequest(
            scope["method"],
            scope["raw_path"].decode("ascii").removeprefix(f"{AIRFLOW_API}/"),
            scope["query_string"].decode("latin-1"),
            await read_body(scope, receive, MAX_XCOM_BYTES),
            (header(scope, b"airflow-api-version") or b"").decode("latin-1"),
        )
        if request.date not in SPOKEN:
            return refused(400, "wrong_version", not_spoken(request.date))
        heads = {}
        if isinstance(token, FleetToken):
            text = heads[_NEW_TOKEN] = await self._begun(token, text, request, receive)
            token = self._tokens.verify(text)
            assert isinstance(token, TryToken)
        answer = await self._answered(Call(token, text, None, {}, receive), token, request)
        answer.heads.update(heads)
        return answer

    async def _begun(self, token: FleetToken, text: str, request: _TaskRequest, receive: Receive) -> str:
        """Returns the token of the try, which this client has begun."""
        if (request.method, request.path) != ("PATCH", f"task-instances/{instance_id(token.epoch)}/run"):
            raise Forbidden(f"This token begins task instance {instance_id(token.epoch)} (PATCH .../run), and does nothing else.")
        try:
            who = msgspec.json.decode(request.body, type=_ClientSays)
        except msgspec.MsgspecError as error:
            raise Refused(400, "bad_message", f"The message cannot be read: {error}.") from None
        return await self._clients.begin(token, text, ClientProcess(who.hostname, who.pid, request.date), receive)

    async def _answered(self, call: Call, token: TryToken, request: _TaskRequest) -> ExecutionAnswer:
        loop = asyncio.get_running_loop()
        of_fleet = FleetToken("worker", epoch=token.epoch)
        async with self._pool.connection() as conn:
            holder = await dispatch.find_holder(conn, token.epoch)
            tries = [] if holder is None else await dispatch.read_tries(conn, service_id=holder.service_id, epochs=[token.epoch])
            if holder is None or not tries:
                raise try_over()
            (assignment,) = await self._claims.assignments(conn, tries)
            _, _, version = await self._versions.of_subject(conn, token.run_key)

        def beat() -> str | None:
            if holder.client != CLIENT:
                return None
            return asyncio.run_coroutine_threadsafe(self._clients.beat(of_fleet, holder.service_id, call.receive), loop).result()

        channel = HandlerChannel(loop, self._handlers, call)
        api = ExecutionApi(
            AirflowTry(
                TryContext.from_assignment(msgspec.to_builtins(assignment)),
                channel,
                index_of=version.index_of,
                mapped=frozenset(task_id for task_id, index in version.index_of.items() if version.mapped[index]),
                looks=_LOOKS,
                on_worker=False,
                draft=channel,
                beat=beat,
            )
        )
        answer: ExecutionAnswer = await self._threads.run(limits.AIRFLOW_REQUEST, copy_context().run, api.handle, *request)
        if answer.status < 300 and api.tasks.ending is not None:
            ending = await channel.shown(_checked(api.tasks.ending))
            await self._clients.end(call.bearer, of_fleet, ending, call.receive)
        return answer


def _checked(ending: Ending) -> Ending:
    """Returns an ending that can be read again, as those of workers are before they are stored. Raises :class:`Refused`."""
    try:
        return msgspec.json.decode(msgspec.json.encode(ending), type=Ending)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise Refused(422, "bad_message", f"The end of the try cannot be read: {error}.") from None


class _ClientSays(msgspec.Struct):
    """Of the body of the request that begins a try."""

    hostname: str
    pid: int
