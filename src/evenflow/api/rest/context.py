"""What the routes need: who asks, and a connection."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Query, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from evenflow.api.judge import Judge
from evenflow.api.logs.store import LogStore
from evenflow.api.probes import Probes
from evenflow.api.refusals import Forbidden, Unauthorized
from evenflow.api.secret_stores.lookup import SecretStores
from evenflow.api.tokens import OperatorToken, Tokens, listed_id
from evenflow.api.vault import Vault
from evenflow.contracts.rest.queries import PageQuery
from evenflow.store.db.connect import AsyncPool, Conn
from evenflow.store.serving.events import ORIGIN
from evenflow.telemetry.vitals import Vitals


@dataclass(frozen=True, slots=True)
class ApiContext:
    pool: AsyncPool
    tokens: Tokens
    logs: LogStore
    vault: Vault
    stores: SecretStores
    judge: Judge
    vitals: Vitals
    probes: Probes


def context(request: Request) -> ApiContext:
    return cast(ApiContext, request.state.context)


InContext = Annotated[ApiContext, Depends(context)]

_bearer = HTTPBearer(auto_error=False, description="An operator token, as in the file operator.token of EVENFLOW_HOME.")


async def checked_operator(tokens: Tokens, text: str | None) -> str:
    """The name of the person whose token ``text`` is."""
    if not text:
        raise Unauthorized("The request has no token (header Authorization: Bearer ...). Set EVENFLOW_TOKEN.")
    token = await tokens.admit(text)
    if (origin := ORIGIN.get()) is not None:
        origin.token_id = listed_id(token)
    if not isinstance(token, OperatorToken):
        raise Forbidden("Only an operator token may do this. On the host of the API it is in EVENFLOW_HOME/operator.token.")
    return token.name


async def operator(within: InContext, credentials: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]) -> str:
    """The name of the person who asks. That they may was checked before their body was read; here the routes say so themselves."""
    return await checked_operator(within.tokens, None if credentials is None else credentials.credentials)


Operator = Annotated[str, Depends(operator)]


async def connection(within: InContext) -> AsyncIterator[Conn]:
    async with within.pool.connection() as conn:
        yield conn


Connection = Annotated[Conn, Depends(connection, scope="function")]


InSlice = Annotated[PageQuery, Query()]
