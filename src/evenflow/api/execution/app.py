"""The execution API: what processes that run user code may ask for. One table has every route, who may call it, what it reads."""

from __future__ import annotations

from starlette.routing import Route, Router

from evenflow.api import limits
from evenflow.api.claims import Claims
from evenflow.api.execution.endpoint import Call, Endpoint, Handler
from evenflow.api.execution.files import FileRoutes
from evenflow.api.execution.services import ServiceRoutes
from evenflow.api.execution.tries import TryRoutes
from evenflow.api.execution.values import ValueRoutes, check_held
from evenflow.api.execution.waiting import WaitingRoutes
from evenflow.api.logs import LogDirectory
from evenflow.api.tokens import FLEETS, SERVICE_KINDS, Tokens
from evenflow.api.vault import Vault
from evenflow.api.versions import Versions
from evenflow.store.connect import AsyncPool
from evenflow.wire import messages
from evenflow.wire.messages import SCHEMA, Message


def execution_routes(
    pool: AsyncPool, *, tokens: Tokens, versions: Versions, claims: Claims, logs: LogDirectory, vault: Vault
) -> Router:
    services = ServiceRoutes(pool, claims, tokens)
    tries = TryRoutes(pool, tokens, versions, claims, logs)
    files = FileRoutes(pool)
    values = ValueRoutes(pool, versions, vault)
    waiting = WaitingRoutes(pool, versions)
    body = limits.EXECUTION_BODY

    def held(handler: Handler) -> Handler:
        """Answers a try that is in hand only: its token is signed for longer. Other handlers look for themselves."""

        async def checked(call: Call) -> Message | bytes | None:
            async with pool.connection() as conn:
                await check_held(conn, call.of_try)
            return await handler(call)

        return checked

    table: list[tuple[str, str, Handler, tuple[str, ...], type[Message] | None, int]] = [
        # method, path, handler, kinds of token, what it reads (none: raw bytes), limit of the body
        ("POST", "/claim", tries.claim, ("worker",), messages.Claim, limits.SMALL_BODY),
        ("POST", "/reports", tries.report, ("worker",), messages.Reports, body),
        ("POST", "/logs", tries.log, ("worker",), messages.Logs, body),
        ("POST", "/services/{service_id:int}/beat", services.beat, SERVICE_KINDS, messages.Beat, limits.SMALL_BODY),
        ("POST", "/services", services.register, FLEETS, messages.Register, limits.SMALL_BODY),
        ("POST", "/xcom", tries.push, ("try",), messages.XComPush, limits.SMALL_BODY),
        ("POST", "/xcom/pull", tries.pull, ("try",), messages.XComPull, limits.SMALL_BODY),
        ("POST", "/ask/element", tries.element, ("try",), messages.AskElement, limits.SMALL_BODY),
        ("POST", "/ask/prior_run", tries.prior_run, ("try",), messages.AskPriorRun, limits.SMALL_BODY),
        ("POST", "/ask/connection", values.connection, ("try",), messages.AskNamed, limits.SMALL_BODY),
        ("POST", "/ask/variable", values.variable, ("try",), messages.AskNamed, limits.SMALL_BODY),
        ("POST", "/ask/set_variable", values.set_variable, ("try",), messages.SetVariable, limits.SMALL_BODY),
        ("POST", "/ask/delete_variable", values.delete_variable, ("try",), messages.AskNamed, limits.SMALL_BODY),
        ("POST", "/ask/previous_run", held(values.previous_run), ("try",), messages.AskPreviousRun, limits.SMALL_BODY),
        ("POST", "/ask/rendered", values.rendered, ("try",), messages.Rendered, limits.SMALL_BODY),
        ("POST", "/ask/waited", waiting.waited, ("try",), messages.AskWaited, limits.SMALL_BODY),
        (
            "POST",
            "/ask/triggering_events",
            held(waiting.triggering_events),
            ("try",),
            messages.AskTriggeringEvents,
            limits.SMALL_BODY,
        ),
        ("POST", "/ask/inlet_events", held(waiting.inlet_events), ("try",), messages.AskInletEvents, limits.SMALL_BODY),
        ("POST", "/ask/states", held(waiting.states), ("try",), messages.AskStates, limits.SMALL_BODY),
        ("POST", "/ask/trigger", waiting.trigger, ("try",), messages.AskTrigger, limits.SMALL_BODY),
        ("POST", "/progress", tries.progress, ("try",), messages.Progress, limits.SMALL_BODY),
        ("POST", "/files/seen", files.seen, ("processor",), messages.FilesSeen, body),
        ("POST", "/files/lease", files.lease, ("processor",), messages.FilesLease, limits.SMALL_BODY),
        ("POST", "/files/parsed", files.parsed, ("processor",), messages.ParsedFile, limits.PARSED_BODY),
        ("PUT", "/code/{code_hash}", files.put_code, ("processor",), None, limits.CODE_BODY),
        ("GET", "/code/{code_hash}", files.get_code, ("worker", "processor"), None, 0),
    ]
    return Router(
        [
            Route(f"{SCHEMA}{path}", Endpoint(tokens, handler, kinds=kinds, reads=reads, body_limit=limit), methods=[method])
            for method, path, handler, kinds, reads, limit in table
        ],
        redirect_slashes=False,
    )
