"""Logging in and out, for people in browsers."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import Request, Response

from evenflow.api import limits
from evenflow.api.refusals import Unauthorized
from evenflow.api.rest.context import Connection, InContext
from evenflow.api.rest.routes import Routes
from evenflow.api.sessions import begin_session, caller, checked_token, login_of, set_cookie
from evenflow.api.tokens import SessionToken, new_jti
from evenflow.contracts.rest.sessions import LoginCode, Session, SessionRequest
from evenflow.errors import NotAllowed
from evenflow.store.serving import tokens

routes = Routes("Sessions")  # for who is logged in
doors = Routes("Sessions")  # for everyone


@doors.post("/session")
async def log_in(conn: Connection, within: InContext, http: Request, response: Response, request: SessionRequest) -> Session:
    """Logs a browser in, by a code that is good once or by an operator's token. The answer sets a cookie that no script reads."""
    address = http.client.host if http.client else "unknown"
    within.logins.check(address)
    try:
        if request.code is not None:
            taken = await tokens.take_login_code(conn, request.code)
            if taken is None:
                raise Unauthorized("The code was used before, or its time is over. `evenflow ui` prints a new one.")
            name, login_id = taken
        else:
            token = await checked_token(within.tokens, request.token)
            name, login_id = token.name, token.token_id
    except NotAllowed:
        within.logins.failed(address)
        raise
    response.headers["Set-Cookie"] = set_cookie(http.scope, await begin_session(conn, within.tokens, name=name, login_id=login_id))
    return Session(name=name, version=version("evenflow"))


@routes.get("/session")
async def get_session(within: InContext, http: Request) -> Session:
    """Who asks."""
    token = await caller(within.tokens, http.scope)
    return Session(name=token.name, version=version("evenflow"))


@routes.delete("/session")
async def log_out(conn: Connection, within: InContext, http: Request, response: Response) -> Session:
    """Logs out: the session is good for nothing any more, on any API server."""
    token = await caller(within.tokens, http.scope)
    if isinstance(token, SessionToken):
        await tokens.revoke(conn, token.token_id, by=token.name)
    response.headers["Set-Cookie"] = set_cookie(http.scope, "")
    return Session(name=token.name, version=version("evenflow"))


@routes.post("/login-codes", status_code=201)
async def make_login_code(conn: Connection, within: InContext, http: Request) -> LoginCode:
    """Makes a code with which a browser logs in as you, once, soon. Its session ends with the token that you show."""
    token = await caller(within.tokens, http.scope)
    code = new_jti()
    expires_at = await tokens.insert_login_code(conn, code, name=token.name, token_id=login_of(token), ttl=limits.LOGIN_CODE)
    return LoginCode(code=code, expires_at=expires_at)
