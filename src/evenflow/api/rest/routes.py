"""Which functions answer which requests, told part by part.

FastAPI works out what a function takes and answers, which takes some milliseconds, and twice as long in a router that is included
in another one. So parts only list their functions, and the whole application has each looked at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from fastapi import FastAPI

Answering = TypeVar("Answering", bound=Callable[..., Any])
Responses = Mapping[int | str, dict[str, Any]]  # by status, as FastAPI has them
NONE: Responses = MappingProxyType({})


class Routes:
    """Of one part. ``prefix`` is what all their paths begin with."""

    def __init__(self, tag: str, *, prefix: str = "") -> None:
        self._tag, self._prefix = tag, prefix
        self._told: list[tuple[str, str, Callable[..., Any], dict[str, Any]]] = []

    def get(self, path: str, **options: Any) -> Callable[[Answering], Answering]:
        """``options`` are those of :meth:`fastapi.FastAPI.add_api_route`, as of the other methods."""
        return self._tell("GET", path, options)

    def post(self, path: str, **options: Any) -> Callable[[Answering], Answering]:
        return self._tell("POST", path, options)

    def patch(self, path: str, **options: Any) -> Callable[[Answering], Answering]:
        return self._tell("PATCH", path, options)

    def put(self, path: str, **options: Any) -> Callable[[Answering], Answering]:
        return self._tell("PUT", path, options)

    def delete(self, path: str, **options: Any) -> Callable[[Answering], Answering]:
        return self._tell("DELETE", path, options)

    def add_to(self, app: FastAPI, prefix: str = "", *, responses: Responses = NONE, **options: Any) -> None:
        """With ``options`` that all of them have, and ``responses`` beside their own."""
        for method, path, answering, own in self._told:
            given = {
                "methods": [method],
                "tags": [self._tag],
                **options,
                **own,
                "responses": {**responses, **own.get("responses", {})},
            }
            app.add_api_route(f"{prefix}{self._prefix}{path}", answering, **given)

    def _tell(self, method: str, path: str, options: dict[str, Any]) -> Callable[[Answering], Answering]:
        def told(answering: Answering) -> Answering:
            self._told.append((method, path, answering, options))
            return answering

        return told
