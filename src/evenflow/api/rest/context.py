"""What the routes need: the caller, and a connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, cast

from fastapi import Depends, Query, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.types import Message

from evenflow.api import limits
from evenflow.api.judge import Judge
from evenflow.api.kept import SharedAnswers
from evenflow.api.logs.store import LogStore
from evenflow.api.probes import Probes
from evenflow.api.refusals import Refused
from evenflow.api.rest.passwords import Passwords
from evenflow.api.secret_stores.lookup import SecretStores
from evenflow.api.sessions import LoginLimit
from evenflow.api.streams.streams import Streams
from evenflow.api.tokens import Caller, Tokens
from evenflow.api.vault import Vault
from evenflow.contracts.rest.queries import PageQuery
from evenflow.core.people.scopes import scope_text
from evenflow.core.tracing import TracedRuns
from evenflow.store.db.connect import AsyncConn, AsyncPool
from evenflow.telemetry.health import HealthMonitor

if TYPE_CHECKING:
    from evenflow.api.identities import Identities


class Exports:
    """Of events, those that this API process is sending."""

    def __init__(self) -> None:
        self._count = 0

    def check_room(self) -> None:
        """Raises :class:`Refused`."""
        if self._count >= limits.EXPORTS:
            raise Refused(
                429,
                "too_many_exports",
                f"This API server sends {limits.EXPORTS} exports of events at once.",
                hint="Try again later.",
                retry_after_s=60,
            )

    @contextmanager
    def one(self) -> Iterator[None]:
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiContext:
    """What routes have beside their request."""

    pool: AsyncPool
    tokens: Tokens
    logs: LogStore
    vault: Vault
    stores: SecretStores
    judge: Judge
    health: HealthMonitor
    probes: Probes
    streams: Streams
    traced: TracedRuns | None = None  # none: traces are not told
    identities: Identities | None = None  # none: people have passwords alone
    logins: LoginLimit = field(default_factory=LoginLimit)
    passwords: Passwords = field(default_factory=Passwords)
    exports: Exports = field(default_factory=Exports)
    shared: SharedAnswers[list[Message]] = field(default_factory=SharedAnswers)


# What routes depend on are coroutines, even where nothing is awaited: anything else is run in a thread, for each request.
async def context(request: Request) -> ApiContext:
    return cast(ApiContext, request.state.context)


InContext = Annotated[ApiContext, Depends(context)]

_bearer = HTTPBearer(auto_error=False, description="A token of a person or tool, as in the file operator.token of EVENFLOW_HOME.")


def caller_of(request: Request) -> Caller:
    """Returns the caller of the request, as it was checked before the body was read. A request that was not checked fails here."""
    return cast(Caller, request.state.caller)


async def asker(request: Request) -> Caller:
    return caller_of(request)


async def scope_of(request: Request) -> str | None:
    """Returns the scope in which the caller's role counts, as statements take it; None means everywhere."""
    return scope_text(caller_of(request).scope)


InScope = Annotated[str | None, Depends(scope_of)]


def address_of(request: Request) -> str:
    """Whence it came."""
    return request.client.host if request.client else "unknown"


def agent_of(request: Request) -> str:
    """In which browser, as that says."""
    said = request.headers.get("user-agent", "")[: limits.BROWSER_CHARS]
    return "".join(char if char.isprintable() else "?" for char in said)


async def actor(request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]) -> str:
    """Returns the name of the person who asks. By this parameter routes declare that they are for people."""
    return caller_of(request).name


Actor = Annotated[str, Depends(actor)]


async def connection(within: InContext) -> AsyncIterator[AsyncConn]:
    async with within.pool.connection() as conn:
        yield conn


Connection = Annotated[AsyncConn, Depends(connection, scope="function")]


InSlice = Annotated[PageQuery, Query()]
