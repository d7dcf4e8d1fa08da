"""Logging in by a provider of identities: where a browser goes for that, and how it comes back."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Annotated

from fastapi import Query, Request, Response

from evenflow.api import limits
from evenflow.api.refusals import REASON, Refused, Unauthorized, refusal
from evenflow.api.rest.context import ApiContext, InContext, address_of, agent_of
from evenflow.api.rest.routes import Routes
from evenflow.api.sessions import CookieKind, WrongCode, begin_session, read_cookie, set_cookie
from evenflow.contracts.rest import IDENTITY
from evenflow.contracts.rest.queries import IdentityAnswerQuery, IdentityLoginQuery
from evenflow.contracts.rest.sessions import IdentityProviderName
from evenflow.errors import EvenflowError
from evenflow.store.serving import users
from evenflow.store.serving.users import NewSession

if TYPE_CHECKING:
    from evenflow.api.identities import Identities, Identity

doors = Routes("Sessions", prefix=IDENTITY)

_LED: dict[int | str, dict[str, str]] = {303: {"description": "Where the browser goes on."}}


@doors.get("", None)
async def get_provider(within: InContext, http: Request) -> IdentityProviderName:
    """Returns the provider by which people may log in here beside passwords, and why its last login was refused."""
    if (identities := within.identities) is None:
        return IdentityProviderName(name=None, refused=None)
    shown = read_cookie(http.scope, within.tokens.installation, CookieKind.REFUSED, is_secure=identities.is_secure)
    return IdentityProviderName(name=identities.name, refused=_opened(shown) if shown else None)


@doors.get("/login", None, status_code=303, response_class=Response, responses=_LED)
async def begin_identity_login(within: InContext, http: Request, query: Annotated[IdentityLoginQuery, Query()]) -> Response:
    """Leads a browser to the provider of identities. The cookie that it is given is needed for the way back."""
    identities, cookies = _identities(within), _CookieJar(within, http)
    try:
        address, brought = await identities.begin(query.then)
    except EvenflowError as error:
        return _not_let_in(error, cookies)
    return _led(address, cookies.set(CookieKind.LOGIN, brought, limits.IDENTITY_LOGIN))


@doors.get("/callback", None, status_code=303, response_class=Response, responses=_LED)
async def end_identity_login(within: InContext, http: Request, query: Annotated[IdentityAnswerQuery, Query()]) -> Response:
    """The provider leads a browser back here. The browser is logged in as the person that the provider names, with what their
    groups may. A person who is refused finds the reason on the login page.
    """
    identities, cookies = _identities(within), _CookieJar(within, http)
    try:
        if query.error is not None:
            raise Unauthorized(f"{identities.name} has let nobody in: {query.error_description or query.error}")
        identity, then = await _vouched(within, identities, query, cookies.brought, address_of(http))
        text, age_s = await _begun(within, identity, http)
    except EvenflowError as error:
        return _not_let_in(error, cookies)
    forgotten = [cookies.set(kind, "", 0) for kind in (CookieKind.LOGIN, CookieKind.REFUSED)]
    return _led(then, cookies.set(CookieKind.SESSION, text, age_s), *forgotten)


async def _vouched(
    within: ApiContext, identities: Identities, query: IdentityAnswerQuery, brought: str, address: str
) -> tuple[Identity, str]:
    """A code that the provider never gave counts as a guess only in a login that began in this browser. Others may lead a browser
    here, and must not delay its person by it.
    """
    within.logins.check(address)
    try:
        return await identities.end(brought, code=query.code or "", state=query.state or "")
    except WrongCode:
        within.logins.failed(address)
        raise


async def _begun(within: ApiContext, identity: Identity, http: Request) -> tuple[str, float]:
    """Begins the session of the person that the provider vouches for, as :func:`begin_session` does."""
    async with within.pool.connection() as conn:
        linked = await users.link_user(conn, identity.subject, name=identity.name, rights=identity.rights)
        if linked is None:
            raise Unauthorized(f"Another user is called {identity.name!r} here, and logs in with a password.", hint="Ask an admin.")
        if linked.is_disabled:
            raise Unauthorized(f"{linked.name} may not log in.")
        of = NewSession(linked.name, user=linked.name, login_id=0, role=None, shown=linked.password)
        return await begin_session(conn, within.tokens, of._replace(address=address_of(http), agent=agent_of(http)))


@doors.get("/logout", None, status_code=303, response_class=Response, responses=_LED)
async def end_identity_session(within: InContext) -> Response:
    """Leads a browser that was logged out here to where the provider logs it out, too."""
    return _led(await _identities(within).end_address("/login"))


def _identities(within: ApiContext) -> Identities:
    """Raises :class:`Refused`."""
    if within.identities is None:
        raise Refused(
            404, "not_found", "No provider of identities is set here (EVENFLOW_IDENTITY_ISSUER).", hint="Log in with a password."
        )
    return within.identities


class _CookieJar:
    """The cookies of one browser."""

    def __init__(self, within: ApiContext, http: Request) -> None:
        self._scope, self._installation = http.scope, within.tokens.installation
        self._is_secure = within.identities is not None and within.identities.is_secure

    @property
    def brought(self) -> str:
        return read_cookie(self._scope, self._installation, CookieKind.LOGIN, is_secure=self._is_secure) or ""

    def set(self, kind: CookieKind, text: str, age_s: float) -> str:
        return set_cookie(self._scope, self._installation, text, kind, age_s=age_s, is_secure=self._is_secure)


def _not_let_in(error: EvenflowError, cookies: _CookieJar) -> Response:
    """To the page where one logs in, which shows why. No address has the reason, since anybody can write one."""
    why = base64.urlsafe_b64encode(refusal(error).message[:REASON].encode()).decode()
    return _led("/login", cookies.set(CookieKind.REFUSED, why, limits.REFUSED_SHOWN))


def _opened(shown: str) -> str | None:
    try:
        return base64.urlsafe_b64decode(shown).decode()[:REASON]
    except ValueError:
        return None


def _led(address: str, *cookies: str) -> Response:
    response = Response(status_code=303, headers={"Location": address})
    for cookie in cookies:
        response.headers.append("Set-Cookie", cookie)
    return response
