"""Which functions answer which requests, told part by part.

FastAPI works out what a function takes and answers, which takes some milliseconds, and twice as long in a router that is included
in another one. So parts only list their functions, and the whole application has each looked at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from evenflow.api.refusals import Forbidden
from evenflow.api.tokens import Caller, SessionToken
from evenflow.core.people.roles import Role

Answering = TypeVar("Answering", bound=Callable[..., Any])
Responses = Mapping[int | str, dict[str, Any]]  # by status, as FastAPI has them
NONE: Responses = MappingProxyType({})
NEEDED_ROLE = "x-role"  # under which the description of a route has the role that it needs


class GuardedRoute(APIRoute):
    """The one place that compares the role of who asks with the one that the route names, before the body is read. A route that
    names none is for everyone, and looks itself at who comes: the door, probes, metrics.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        needed = (self.openapi_extra or {}).get(NEEDED_ROLE)
        if needed is not None:
            check_role(scope["state"]["caller"], Role(needed))
        await super().handle(scope, receive, send)


def check_role(caller: Caller, needed: Role) -> None:
    """Raises :class:`Forbidden`."""
    if not caller.role.allows(needed):
        raise Forbidden(
            f"This is for the role {needed}, and {caller.name} has the role {caller.role}. An admin can change that: "
            f"evenflow users set-role {caller.name} {needed}"
            if isinstance(caller, SessionToken) and caller.by_password
            else f"This is for the role {needed}, and the token of {caller.name} has the role {caller.role}. Who can reach the "
            f"database makes another one: evenflow tokens create operator --role {needed}"
        )


class Routes:
    """Of one part. ``prefix`` is what all their paths begin with."""

    def __init__(self, tag: str, *, prefix: str = "") -> None:
        self._tag, self._prefix = tag, prefix
        self._told: list[tuple[str, str, Role | None, Callable[..., Any], dict[str, Any]]] = []

    def get(self, path: str, role: Role | None, **options: Any) -> Callable[[Answering], Answering]:
        """``role`` is what who asks needs at least; None: it is for everyone. ``options`` are those of
        :meth:`fastapi.FastAPI.add_api_route`, as of the other methods.
        """
        return self._tell("GET", path, role, options)

    def post(self, path: str, role: Role | None, **options: Any) -> Callable[[Answering], Answering]:
        return self._tell("POST", path, role, options)

    def patch(self, path: str, role: Role | None, **options: Any) -> Callable[[Answering], Answering]:
        return self._tell("PATCH", path, role, options)

    def put(self, path: str, role: Role | None, **options: Any) -> Callable[[Answering], Answering]:
        return self._tell("PUT", path, role, options)

    def delete(self, path: str, role: Role | None, **options: Any) -> Callable[[Answering], Answering]:
        return self._tell("DELETE", path, role, options)

    def add_to(self, app: FastAPI, prefix: str = "", *, responses: Responses = NONE, **options: Any) -> None:
        """With ``options`` that all of them have, and ``responses`` beside their own."""
        for method, path, role, answering, own in self._told:
            given = {
                "methods": [method],
                "tags": [self._tag],
                **({} if role is None else {"openapi_extra": {NEEDED_ROLE: str(role)}}),
                **options,
                **own,
                "responses": {**responses, **own.get("responses", {})},
            }
            app.add_api_route(f"{prefix}{self._prefix}{path}", answering, **given)

    def _tell(self, method: str, path: str, role: Role | None, options: dict[str, Any]) -> Callable[[Answering], Answering]:
        def told(answering: Answering) -> Answering:
            self._told.append((method, path, role, answering, options))
            return answering

        return told
