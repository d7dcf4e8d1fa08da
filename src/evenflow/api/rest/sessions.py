"""Sessions of people in browsers: logging in by a password, a code or a token, logging out, and where one is logged in."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import Request, Response

from evenflow.api import limits
from evenflow.api.refusals import Forbidden, Refused, Unauthorized
from evenflow.api.rest.context import ApiContext, Connection, InContext, InSlice, address_of, agent_of, caller_of
from evenflow.api.rest.paging import part_of
from evenflow.api.rest.routes import Routes
from evenflow.api.sessions import begin_session, checked_token, set_cookie
from evenflow.api.tokens import Caller, OperatorToken, SessionToken
from evenflow.contracts.rest.record import Page
from evenflow.contracts.rest.sessions import LoginCode, Session, SessionRequest, SessionSummary
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import ScopedBy
from evenflow.errors import NotAllowed
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.serving import tokens, users
from evenflow.store.serving.users import NewSession

routes = Routes("Sessions")  # for people who are logged in
doors = Routes("Sessions")  # for everyone


@doors.post("/session", None)
async def log_in(within: InContext, http: Request, response: Response, request: SessionRequest) -> Session:
    """Logs a browser in, by a name and a password, by a code that is good once or by an operator's token. The answer sets a cookie
    that no script reads.
    """
    address = address_of(http)
    if request.name is not None:
        begun = await _by_password(within, request.name, request.password or "", address)
    else:
        try:
            begun = await _by_token(within, request, address)
        except NotAllowed:
            within.logins.failed(address)
            raise
    begun = begun._replace(address=address, agent=agent_of(http))
    async with within.pool.connection() as conn:
        text, age_s = await begin_session(conn, within.tokens, begun)
    response.headers["Set-Cookie"] = set_cookie(http.scope, within.tokens.installation, text, age_s=age_s)
    token = await within.tokens.admit(text)
    assert isinstance(token, SessionToken)
    return _told(token)


async def _by_password(within: ApiContext, name: str, password: str, address: str) -> NewSession:
    """Raises :class:`NotAllowed`: in the same words and after the same time whether there is such a user or not; and
    :class:`Refused`.
    """
    with within.logins.attempt(address, name):
        async with within.pool.connection() as conn:
            found = await users.find_user(conn, name)
        checked = await within.passwords.check(password, found.password if found else None)
        if found is None or not checked.is_right or found.is_disabled:
            raise Unauthorized("There is no user with this name and password, or they may not log in.")
    return NewSession(name, user=name, login_id=0, role=None, shown=found.password, renewed=checked.renewed)


async def _by_token(within: ApiContext, request: SessionRequest, address: str) -> NewSession:
    """Begins a session that ends with the token. Raises :class:`NotAllowed`, or :class:`Refused` after too many guesses: then the
    database is asked about no further ones.
    """
    if request.code is None:
        token = await checked_token(within.tokens, request.token)
        name, login_id = token.name, token.token_id
    else:
        if not within.tokens.has_made(request.code, "login code"):
            within.logins.check(address)
        async with within.pool.connection() as conn:
            taken = await tokens.take_login_code(conn, request.code)
        if taken is None:
            raise Unauthorized("The code was used before, or its time is over.", hint="`evenflow ui` prints a new one.")
        name, login_id = taken
    role = None if login_id else Role.ADMIN  # the only token that is in no list is the API's own
    return NewSession(name, user=None, login_id=login_id, role=role)


@routes.get("/session", Role.VIEWER, ScopedBy.OWN)
async def get_session(http: Request) -> Session:
    """The person who asks, and what they may do."""
    return _told(caller_of(http))


def _told(caller: Caller) -> Session:
    return Session(
        name=caller.name,
        role=caller.role,
        scope=caller.scope,
        by_password=isinstance(caller, SessionToken) and caller.by_password and not caller.is_vouched,
        by_provider=isinstance(caller, SessionToken) and caller.is_vouched,
        version=version("evenflow"),
    )


@routes.delete("/session", Role.VIEWER, ScopedBy.OWN)
async def log_out(conn: Connection, within: InContext, http: Request, response: Response) -> Session:
    """Logs out: the session, or the token of `evenflow login`, is good for nothing any more, on any API server."""
    token = caller_of(http)
    if isinstance(token, SessionToken) or token.is_personal:
        await tokens.revoke(conn, token.token_id, by=token.name)
    response.headers["Set-Cookie"] = set_cookie(http.scope, within.tokens.installation, "")
    return _told(token)


@routes.get("/sessions", Role.VIEWER, ScopedBy.OWN)
async def list_sessions(conn: Connection, http: Request, query: InSlice) -> Page[SessionSummary]:
    """Where you are logged in, in browsers and by `evenflow login`, the newest first; for an admin, where everybody is."""
    part = part_of(http, query, int)
    rows = await _visible(conn, caller_of(http), limit=part.limit, after=part.after)
    return part.page(Page[SessionSummary], rows)


@routes.delete("/sessions/{session_id}", Role.VIEWER, ScopedBy.OWN)
async def end_session(conn: Connection, http: Request, session_id: int) -> SessionSummary:
    """Logs out a browser or a command line: one of yours, or as an admin anybody's."""
    caller = caller_of(http)
    for found in await _visible(conn, caller, session_id=session_id, limit=1):
        await tokens.revoke(conn, session_id, by=caller.name)
        return SessionSummary(**found)
    raise Refused(404, "not_found", f"There is no session {session_id} that you see.", hint="Where you are: evenflow sessions list")


async def _visible(
    conn: AsyncConn, caller: Caller, *, session_id: int | None = None, limit: int, after: str | None = None
) -> list[Row]:
    """Those that began as the caller's did, or one of them; an admin sees all."""
    user: str | None = None
    login_id: int | None = None
    if not caller.role.allows(Role.ADMIN):
        if caller.is_personal if isinstance(caller, OperatorToken) else caller.by_password:
            user = caller.name
        elif isinstance(caller, OperatorToken):
            login_id = caller.token_id
        else:
            login_id = caller.login_id
    rows = await users.list_sessions(conn, user=user, login_id=login_id, session_id=session_id, limit=limit, after=after)
    return [{**row, "is_this": row["session_id"] == caller.token_id} for row in rows]


@routes.post("/login-codes", Role.VIEWER, ScopedBy.OWN, status_code=201)
async def make_login_code(conn: Connection, within: InContext, http: Request) -> LoginCode:
    """Makes a code with which a browser logs in as you, once, soon. Its session ends with the token that you show. A session cannot
    make a code: a person who has copied a session could renew it for ever.
    """
    token = caller_of(http)
    if isinstance(token, SessionToken):
        raise Forbidden("A session makes no other one.", hint="`evenflow ui` prints an address for each browser.")
    code = within.tokens.code("login code")
    expires_at = await tokens.insert_login_code(conn, code, name=token.name, token_id=token.token_id, ttl=limits.LOGIN_CODE)
    return LoginCode(code=code, expires_at=expires_at)
