"""Tokens: which were given out, new ones, and their end. An admin gives them, as an admin makes users."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from evenflow.api.refusals import Refused
from evenflow.api.rest.context import Actor, Connection, InContext
from evenflow.api.rest.paging import part_of
from evenflow.api.rest.routes import Routes
from evenflow.api.rest.users import check_rights
from evenflow.api.token_making import TokenMaker
from evenflow.api.tokens import DAY_S
from evenflow.contracts.rest.queries import TokenQuery
from evenflow.contracts.rest.record import Page
from evenflow.contracts.rest.tokens import GivenToken, RevokedToken, TokenRequest, TokenSummary
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import Rights
from evenflow.store.serving import tokens

routes = Routes("Tokens")


@routes.get("/tokens", Role.ADMIN)
async def list_tokens(http: Request, conn: Connection, query: Annotated[TokenQuery, Query()]) -> Page[TokenSummary]:
    """Tokens that were given out, the newest first: of people, tools and fleets, and sessions of browsers."""
    part = part_of(http, query, int)
    rows = await tokens.list_tokens(conn, kind=query.kind, state=query.state, limit=part.limit, after=part.after)
    return part.page(Page[TokenSummary], rows)


@routes.post("/tokens", Role.ADMIN, status_code=201)
async def create_token(conn: Connection, within: InContext, actor: Actor, request: TokenRequest) -> GivenToken:
    """Makes a token. Its text is in the answer, once."""
    role = request.role or Role.OPERATOR
    check_rights(role, request.scope)
    return await TokenMaker(conn, within.tokens.keys).make(
        request.kind,
        name=request.name or actor,
        by=actor,
        serves=request.serves,
        rights=Rights(role, request.scope),
        ttl=None if request.days is None else request.days * DAY_S,
    )


@routes.delete("/tokens/{token_id}", Role.ADMIN)
async def revoke_token(conn: Connection, actor: Actor, token_id: int) -> RevokedToken:
    """Makes a token void at once. Services that registered with it are refused, too, and kill their tries."""
    revoked = await tokens.revoke(conn, token_id, by=actor)
    if revoked is None:
        raise Refused(404, "not_found", f"There is no token {token_id}.", hint="To see all, type: evenflow tokens list")
    kind, name = revoked
    return RevokedToken(token_id=token_id, kind=kind, name=name)
