"""Which functions answer which requests, told part by part.

FastAPI works out what a function takes and answers, which takes some milliseconds, and twice as long in a router that is included
in another one. So parts only list their functions, and the whole application has each looked at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.types import Message, Receive, Scope, Send

from evenflow.api.kept import SharedAnswers
from evenflow.api.refusals import Forbidden, Refused, no_dag, no_pool
from evenflow.api.tokens import Caller, SessionToken
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import PersonScope, ScopedBy, scope_text
from evenflow.store.db.connect import AsyncPool
from evenflow.store.serving import views

Answering = TypeVar("Answering", bound=Callable[..., Any])
Responses = Mapping[int | str, dict[str, Any]]  # by status, as FastAPI has them
NONE: Responses = MappingProxyType({})
NEEDED_ROLE = "x-role"  # under which the description of a route has the role that it needs
SCOPED_BY = "x-scoped-by"  # and how it keeps to the scope of its caller


class GuardedRoute(APIRoute):
    """Compares the role of the caller with the one that the route names, before the body is read. Nothing else does so. A route
    without a role is for everyone, and checks its callers itself: logging in, probes, metrics. A caller whose role counts in one
    scope only is refused where the route does not say how it keeps to scopes.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        told = self.openapi_extra or {}
        if (needed := told.get(NEEDED_ROLE)) is not None:
            caller: Caller = scope["state"]["caller"]
            check_role(caller, Role(needed))
            if caller.scope is not None:
                how = ScopedBy(told[SCOPED_BY]) if SCOPED_BY in told else None
                await check_scope(scope["state"]["context"].pool, caller.name, caller.scope, how, scope["path_params"])
        await self.answer(scope, receive, send)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """To a caller that may ask."""
        await super().handle(scope, receive, send)


class SharedRoute(GuardedRoute):
    """Callers with the same role and scope that ask the same at the same moment, as open pages do when something moves, get one
    answer: it is read from the database and written as JSON once. A refusal in which its own request stands is each caller's own.
    """

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Caller = scope["state"]["caller"]
        question = (scope["method"], scope["path"], scope["query_string"], caller.role, scope_text(caller.scope))
        shared: SharedAnswers[list[Message]] = scope["state"]["context"].shared
        messages = await shared.get(question, partial(self._read, scope, receive))
        if messages[0]["status"] != 200:
            await super().answer(scope, receive, send)
            return
        for message in messages:
            await send(dict(message))

    async def _read(self, scope: Scope, receive: Receive) -> list[Message]:
        messages: list[Message] = []

        async def kept(message: Message) -> None:
            messages.append(message)

        await super().answer(dict(scope), receive, kept)
        return messages


def check_role(caller: Caller, needed: Role) -> None:
    """Raises :class:`Forbidden`."""
    if not caller.role.allows(needed):
        of_token = not (isinstance(caller, SessionToken) and (caller.is_vouched or caller.by_password))
        whose = f"the token of {caller.name}" if of_token else caller.name
        raise Forbidden(
            f"This is for the role {needed}, and {whose} has the role {caller.role}.", hint=_where_roles_change(caller, needed)
        )


def _where_roles_change(caller: Caller, needed: Role) -> str:
    match caller:
        case SessionToken(is_vouched=True):
            return (
                "Groups at the provider of identities decide that, at each login: identity_groups of the API's evenflow.toml says "
                "which group has which role."
            )
        case SessionToken(by_password=True):
            return f"An admin can change that: evenflow users set-role {caller.name} {needed}"
        case _:
            return f"An admin makes another one: evenflow tokens create operator --role {needed}"


async def check_scope(pool: AsyncPool, name: str, scope: PersonScope, how: ScopedBy | None, names: Mapping[str, str]) -> None:
    """Refuses names outside the scope as if they did not exist. Raises :class:`EvenflowError`."""
    match how:
        case ScopedBy.DAG:
            async with pool.connection() as conn:
                if not await views.has_dag(conn, names["dag_id"], scope=scope_text(scope)):
                    raise no_dag(names["dag_id"])
        case ScopedBy.POOL if not scope.has("pools", names["name"]):
            raise no_pool(names["name"])
        case ScopedBy.QUEUE if not scope.has("queues", names["queue"]):
            raise Refused(404, "not_found", f"There is no queue {names['queue']!r}.", hint="To see all, type: evenflow status")
        case None:
            raise Forbidden(f"This is for those whose role counts everywhere, and that of {name} counts in a scope alone.")
        case _:
            pass


class Routes:
    """Of one part. ``prefix`` is what all their paths begin with."""

    def __init__(self, tag: str, *, prefix: str = "") -> None:
        self._tag, self._prefix = tag, prefix
        self._told: list[tuple[str, str, dict[str, str], Callable[..., Any], dict[str, Any]]] = []

    @property
    def paths(self) -> list[str]:
        return [self._prefix + path for _, path, *_ in self._told]

    def get(
        self, path: str, role: Role | None, scoped: ScopedBy | None = None, *, shared: bool = False, **options: Any
    ) -> Callable[[Answering], Answering]:
        """``role`` is the least role that a caller needs; None means that the route is for everyone. ``scoped`` is how the route
        keeps to the caller's scope: routes of a DAG do so by the DAG unless they say otherwise. ``shared``: the answer depends on
        nothing of the caller but role and scope, and may be shared (:class:`SharedRoute`). ``options`` are those of
        :meth:`fastapi.FastAPI.add_api_route`, here and for the other methods.
        """
        if shared:
            options["route_class_override"] = SharedRoute
        return self._tell("GET", path, role, scoped, options)

    def post(
        self, path: str, role: Role | None, scoped: ScopedBy | None = None, **options: Any
    ) -> Callable[[Answering], Answering]:
        return self._tell("POST", path, role, scoped, options)

    def patch(
        self, path: str, role: Role | None, scoped: ScopedBy | None = None, **options: Any
    ) -> Callable[[Answering], Answering]:
        return self._tell("PATCH", path, role, scoped, options)

    def put(self, path: str, role: Role | None, scoped: ScopedBy | None = None, **options: Any) -> Callable[[Answering], Answering]:
        return self._tell("PUT", path, role, scoped, options)

    def delete(
        self, path: str, role: Role | None, scoped: ScopedBy | None = None, **options: Any
    ) -> Callable[[Answering], Answering]:
        return self._tell("DELETE", path, role, scoped, options)

    def add_to(self, app: FastAPI, prefix: str = "", *, responses: Responses = NONE, **options: Any) -> None:
        """With ``options`` that all of them have, and ``responses`` beside their own."""
        for method, path, needs, answering, own in self._told:
            given = {
                "methods": [method],
                "tags": [self._tag],
                **({"openapi_extra": needs} if needs else {}),
                **options,
                **own,
                "responses": {**responses, **own.get("responses", {})},
            }
            app.router.add_api_route(f"{prefix}{self._prefix}{path}", answering, **given)

    def _tell(
        self, method: str, path: str, role: Role | None, scoped: ScopedBy | None, options: dict[str, Any]
    ) -> Callable[[Answering], Answering]:
        how = scoped or (ScopedBy.DAG if "{dag_id}" in path else None)
        needs = {name: str(value) for name, value in ((NEEDED_ROLE, role), (SCOPED_BY, how)) if value is not None}

        def told(answering: Answering) -> Answering:
            self._told.append((method, path, needs, answering, options))
            return answering

        return told
