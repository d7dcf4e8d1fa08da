"""REST for people and tools, and the one form that all its errors have."""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import version
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenflow.api import limits
from evenflow.api.bodies import header
from evenflow.api.paces import Paces
from evenflow.api.refusals import UNREAD, HttpRefusal, Refused, refusal, request_id, too_large
from evenflow.api.rest import (
    approvals,
    assets,
    backfills,
    dags,
    device_logins,
    event_export,
    executors,
    explanations,
    fleets,
    health,
    identity,
    live,
    logs,
    metrics,
    notifications,
    operations,
    pools,
    problems,
    runs,
    sealed,
    service_states,
    sessions,
    settings,
    spark_stages,
    spark_ui,
    system,
    tokens,
    users,
    versions,
    xcoms,
)
from evenflow.api.rest.context import ApiContext, actor
from evenflow.api.rest.etags import Tagged
from evenflow.api.rest.routes import GuardedRoute, Responses
from evenflow.api.sessions import caller, check_same_origin
from evenflow.api.watching import WATCHED, Watchers
from evenflow.contracts.rest import PREFIX
from evenflow.contracts.rest.problems import MEDIA_TYPE, PATH, TITLES, Problem
from evenflow.contracts.rest.record import NAME_RULE
from evenflow.core.likeness import did_you_mean

DESCRIPTION = f"{PREFIX}/openapi.json"  # of REST itself, for everyone
DOOR = f"{PREFIX}/session"  # where a browser logs in
_OPEN = frozenset(
    {DESCRIPTION, *(f"{PREFIX}{path}" for doors in (identity.doors, device_logins.doors) for path in doors.paths)}
)  # for everyone

_RULES = (  # for browsers: an answer is for its caller only, and not a page
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_CODES = {404: "not_found", 405: "method_not_allowed"}
_NAMES = ("dag_id", "run_id", "task_id")  # that are held to the rule of names
_ERRORS = {
    401: "No token, or one that is not good any more.",
    403: "The token or session is good, but not for this: its role is too low, or it is of another kind.",
    404: "There is no such thing.",
    409: "It cannot be done in the present state.",
    413: "The body is too large.",
    422: "A value makes no sense.",
    429: "The token asks too often: `Retry-After` says for how long to wait.",
    502: "What the answer would come from cannot be reached.",
    503: "The database does not answer.",
}
_PROBLEM = {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}}
# The record itself is described once, in `_Rest`: FastAPI works out each model that is named, for each route anew.
_REFUSED: Responses = {status: {"description": text, "content": _PROBLEM} for status, text in _ERRORS.items()}


def rest_application(context: ApiContext, *, metrics_token: str = "", requests_each: float = limits.REQUESTS_EACH) -> ASGIApp:
    watchers, paces = Watchers(context.tokens, metrics_token), Paces(requests_each)
    app = described_rest()

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        async def ruled(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}  # a page of Spark may have its styles
                message["headers"] = [*message["headers"], *(rule for rule in _RULES if rule[0] not in own)]
            await send(message)

        scope["state"] = {"context": context, "watchers": watchers, "paces": paces}
        await app(scope, receive, ruled)

    return application


@cache
def described_rest() -> FastAPI:
    """What REST is, for every server of this process: to work out what routes take and answer costs some 0.3 s."""
    app = _Rest(
        title="Evenflow",
        version=version("evenflow"),
        openapi_url=DESCRIPTION,
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # it would lead to the host that a request names, and from TLS before a proxy into the clear
        generate_unique_id_function=_operation_id,
        telemetry={"tracing": False, "metrics": False},  # ours are elsewhere, and a look for others costs 20 µs a request
    )
    app.router.route_class = GuardedRoute
    for part in (
        dags,
        versions,
        runs,
        operations,
        approvals,
        backfills,
        logs,
        live,
        explanations,
        xcoms,
        spark_stages,
        spark_ui,
        sealed,
        pools,
        executors,
        assets,
        settings,
        service_states,
        fleets,
        sessions,
        device_logins,
        event_export,
        users,
        tokens,
        notifications,
        system,
    ):
        part.routes.add_to(app, PREFIX, dependencies=[Depends(actor)], responses=_REFUSED)
    too_often = {"description": "Too many logins have failed.", "content": _PROBLEM}
    sessions.doors.add_to(app, PREFIX, responses={**_REFUSED, 429: too_often})
    identity.doors.add_to(app, PREFIX, responses={**_REFUSED, 429: too_often})
    device_logins.doors.add_to(app, PREFIX, responses={**_REFUSED, 429: too_often})
    problems.routes.add_to(app, PREFIX, responses=_REFUSED)
    health.routes.add_to(app)
    metrics.routes.add_to(app)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_middleware(Tagged)
    app.add_middleware(_Refusals)
    return app


class _Rest(FastAPI):
    """Its description has each refusal that many routes share once, and no second type for an answer that has a record."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            described = super().openapi()
            described["components"]["schemas"][Problem.__name__] = Problem.model_json_schema()
            shared = described["components"].setdefault("responses", {})
            for operation in (each for path in described["paths"].values() for each in path.values()):
                for status, told in operation["responses"].items():
                    for schema in (content.get("schema", {}) for content in told.get("content", {}).values()):
                        if "$ref" in schema:
                            schema.pop("type", None)  # FastAPI calls whatever streams a string
                    if told["description"] == _ERRORS.get(int(status)):
                        shared.setdefault(f"Refused{status}", told)
                        operation["responses"][status] = {"$ref": f"#/components/responses/Refused{status}"}
        return super().openapi()


class _Refusals:
    """Refuses callers without a token, callers that ask too often and bodies that are too large, before a body is read. Also
    answers with what a route raises.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            if scope["path"] == DOOR and scope["method"] == "POST":
                check_same_origin(scope)
            elif _is_guarded(scope["path"]):
                asking = scope["state"]["caller"] = await caller(scope["state"]["context"].tokens, scope)
                scope["state"]["paces"].check(asking)
            elif scope["path"] in WATCHED:
                await scope["state"]["watchers"].check(scope)
            _check_length(scope)
            await self._app(scope, receive, watched)
        except Exception as error:
            answer = refusal(error)
            if begun:
                raise
            response = _problem(scope["path"], answer)
            if answer.status == 401:
                response.headers["WWW-Authenticate"] = "Bearer"
            if answer.retry_after_s:
                response.headers["Retry-After"] = str(answer.retry_after_s)
            if answer.status in UNREAD:
                response.headers["Connection"] = "close"
            await response(scope, receive, send)


def _is_guarded(path: str) -> bool:
    """Whether the path is for callers with a token alone, be there anything or not."""
    return path.startswith(f"{PREFIX}/") and not (path in _OPEN or path.startswith(f"{PREFIX}{PATH}/"))


def _check_length(scope: Scope) -> None:
    if header(scope, b"transfer-encoding") is not None:
        raise Refused(411, "length_required", "The length of the body is not known.", hint="Send it with a Content-Length.")
    length = header(scope, b"content-length")
    if length is not None and int(length) > limits.REST_BODY:
        raise too_large("The body of the request", limits.REST_BODY)


def _problem(path: str, answer: HttpRefusal) -> JSONResponse:
    problem = Problem(
        type=problems.type_of(answer.code),
        title=TITLES[answer.code],
        status=answer.status,
        detail=answer.detail,
        instance=path,
        hint=answer.hint,
        request_id=request_id(),
    )
    return JSONResponse(problem.model_dump(), status_code=answer.status, media_type=MEDIA_TYPE)


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    path = request.scope["path"]
    detail = {
        404: f"There is nothing at {path}.",
        405: f"{request.method} is not possible at {path}.",
    }.get(error.status_code, str(error.detail))
    return _problem(path, HttpRefusal(error.status_code, _CODES.get(error.status_code, "bad_request"), detail))


async def _validation_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    flaws = [_flaw(found) for found in error.errors()]
    return _problem(request.scope["path"], HttpRefusal(422, "bad_value", "; ".join(flaws)))


def _flaw(found: dict[str, Any]) -> str:
    """One thing that is wrong with a request, and where; what a rule about the whole body says stands alone."""
    match found["type"], found["loc"]:
        case "json_invalid", (_, position):
            return f"the body is no JSON: {found['msg']} at position {position}"
        case "value_error", ("body",):
            return str(found["ctx"]["error"])
        case (("string_pattern_mismatch" | "string_too_short" | "string_too_long"), (_, name)) if name in _NAMES:
            return f"{name} has {NAME_RULE}, not {found['input']!r:.300}"
        case (("enum" | "literal_error"), (_, *_, name)):
            known = re.findall(r"'([^']*)'", found["ctx"]["expected"])
            return f"{name} is one of {', '.join(known)}, not {found['input']!r:.100}.{did_you_mean(str(found['input']), known)}"
        case "less_than_equal", (_, *_, name):
            return f"{name} is at most {found['ctx']['le']:,}, not {found['input']!s:.100}"
        case "greater_than_equal", (_, *_, name):
            return f"{name} is at least {found['ctx']['ge']:,}, not {found['input']!s:.100}"
        case _, place:
            return f"{'.'.join(str(part) for part in place)}: {found['msg']}"


def _operation_id(route: APIRoute) -> str:
    return route.name
