"""Logging in by a provider of identities: where a browser goes for that, and how it comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import Query, Request, Response

from evenflow.api.refusals import Refused, Unauthorized
from evenflow.api.rest.context import ApiContext, InContext, address_of, agent_of
from evenflow.api.rest.routes import Routes
from evenflow.api.sessions import begin_session, login_cookie, set_cookie, set_login_cookie
from evenflow.contracts.rest.queries import IdentityAnswerQuery, IdentityLoginQuery
from evenflow.contracts.rest.sessions import IdentityProviderName
from evenflow.errors import NotAllowed
from evenflow.store.serving import users
from evenflow.store.serving.users import NewSession

if TYPE_CHECKING:
    from evenflow.api.identities import Identities

doors = Routes("Sessions", prefix="/identity")

_LED: dict[int | str, dict[str, str]] = {303: {"description": "Where the browser goes on."}}


@doors.get("", None)
async def get_provider(within: InContext) -> IdentityProviderName:
    """By whom people may log in here beside passwords."""
    return IdentityProviderName(name=within.identities.name if within.identities else None)


@doors.get("/login", None, status_code=303, response_class=Response, responses=_LED)
async def begin_identity_login(within: InContext, http: Request, query: Annotated[IdentityLoginQuery, Query()]) -> Response:
    """Leads a browser to the provider of identities. The cookie that it is given is needed for the way back."""
    address, brought = await _identities(within).begin(query.then)
    return _led(address, set_login_cookie(http.scope, within.tokens.installation, brought))


@doors.get("/callback", None, status_code=303, response_class=Response, responses=_LED)
async def end_identity_login(within: InContext, http: Request, query: Annotated[IdentityAnswerQuery, Query()]) -> Response:
    """Where the provider leads a browser back: it is logged in as who the provider says, with what their groups may here."""
    address = address_of(http)
    within.logins.check(address)
    try:
        if query.error is not None:
            raise Refused(401, "unauthorized", f"The provider has let nobody in: {query.error_description or query.error}")
        brought = login_cookie(http.scope, within.tokens.installation) or ""
        identities = _identities(within)
        identity, then = await identities.end(brought, code=query.code or "", state=query.state or "")
        async with within.pool.connection() as conn:
            linked = await users.link_user(conn, identity.subject, name=identity.name, rights=identity.rights)
            if linked is None:
                raise Unauthorized(f"Another user is called {identity.name!r} here, and logs in with a password. Ask an admin.")
            if linked.is_disabled:
                raise Unauthorized(f"{linked.name} may not log in.")
            of = NewSession(linked.name, user=linked.name, login_id=0, role=None, shown=linked.password)
            begun = of._replace(address=address, agent=agent_of(http))
            text, age_s = await begin_session(conn, within.tokens, begun)
    except NotAllowed:
        within.logins.failed(address)
        raise
    forgotten = set_login_cookie(http.scope, within.tokens.installation, "")
    session = set_cookie(http.scope, within.tokens.installation, text, age_s=age_s, is_secure=identities.is_secure)
    return _led(then, session, forgotten)


@doors.get("/logout", None, status_code=303, response_class=Response, responses=_LED)
async def end_identity_session(within: InContext) -> Response:
    """Leads a browser that was logged out here to where the provider logs it out, too."""
    return _led(await _identities(within).end_address("/login"))


def _identities(within: ApiContext) -> Identities:
    """Raises :class:`Refused`."""
    if within.identities is None:
        raise Refused(404, "not_found", "No provider of identities is set here (EVENFLOW_IDENTITY_ISSUER). Log in with a password.")
    return within.identities


def _led(address: str, *cookies: str) -> Response:
    response = Response(status_code=303, headers={"Location": address})
    for cookie in cookies:
        response.headers.append("Set-Cookie", cookie)
    return response
