"""Logging in and out, for people in browsers."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import Request, Response

from evenflow.api import limits
from evenflow.api.refusals import Forbidden, Unauthorized
from evenflow.api.rest.context import ApiContext, Connection, InContext, caller_of
from evenflow.api.rest.routes import Routes
from evenflow.api.sessions import begin_session, checked_token, set_cookie
from evenflow.api.tokens import SessionToken
from evenflow.contracts.rest.sessions import LoginCode, Session, SessionRequest
from evenflow.errors import NotAllowed
from evenflow.store.serving import tokens

routes = Routes("Sessions")  # for who is logged in
doors = Routes("Sessions")  # for everyone


@doors.post("/session")
async def log_in(within: InContext, http: Request, response: Response, request: SessionRequest) -> Session:
    """Logs a browser in, by a code that is good once or by an operator's token. The answer sets a cookie that no script reads."""
    address = http.client.host if http.client else "unknown"
    try:
        name, login_id = await _who(within, request, address)
    except NotAllowed:
        within.logins.failed(address)
        raise
    async with within.pool.connection() as conn:
        text, age_s = await begin_session(conn, within.tokens, name=name, login_id=login_id)
    response.headers["Set-Cookie"] = set_cookie(http.scope, within.tokens.installation, text, age_s=age_s)
    return Session(name=name, version=version("evenflow"))


async def _who(within: ApiContext, request: SessionRequest, address: str) -> tuple[str, int]:
    """The person, and the number of the token that the session ends with. Raises :class:`NotAllowed`, and :class:`Refused` when
    there were too many guesses: then the database is asked for no more of them.
    """
    if request.code is None:
        token = await checked_token(within.tokens, request.token)
        return token.name, token.token_id
    if not within.tokens.has_made(request.code):
        within.logins.check(address)
    async with within.pool.connection() as conn:
        taken = await tokens.take_login_code(conn, request.code)
    if taken is None:
        raise Unauthorized("The code was used before, or its time is over. `evenflow ui` prints a new one.")
    return taken


@routes.get("/session")
async def get_session(http: Request) -> Session:
    """Who asks."""
    token = caller_of(http)
    return Session(name=token.name, version=version("evenflow"))


@routes.delete("/session")
async def log_out(conn: Connection, within: InContext, http: Request, response: Response) -> Session:
    """Logs out: the session is good for nothing any more, on any API server."""
    token = caller_of(http)
    if isinstance(token, SessionToken):
        await tokens.revoke(conn, token.token_id, by=token.name)
    response.headers["Set-Cookie"] = set_cookie(http.scope, within.tokens.installation, "")
    return Session(name=token.name, version=version("evenflow"))


@routes.post("/login-codes", status_code=201)
async def make_login_code(conn: Connection, within: InContext, http: Request) -> LoginCode:
    """Makes a code with which a browser logs in as you, once, soon. Its session ends with the token that you show. A session makes
    none: whoever has copied one would go on for ever.
    """
    token = caller_of(http)
    if isinstance(token, SessionToken):
        raise Forbidden("A session makes no other one. `evenflow ui` prints an address for each browser.")
    code = within.tokens.login_code()
    expires_at = await tokens.insert_login_code(conn, code, name=token.name, token_id=token.token_id, ttl=limits.LOGIN_CODE)
    return LoginCode(code=code, expires_at=expires_at)
