"""People in browsers: what a session's cookie is, and which requests it may speak for.

A session is a token of its own, in the list of tokens: logging out revokes it, on every API server at once. A browser keeps it in a
cookie that no script can read, and shows it by itself, also with requests that another page had it make. So a request with a cookie
counts only when the browser says that a page of this very origin made it. One with an Authorization header needs none of this: no
other page can add that.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from time import monotonic, time
from urllib.parse import urlsplit

from starlette.requests import cookie_parser
from starlette.types import Scope

from evenflow.api import limits
from evenflow.api.bodies import bearer, header
from evenflow.api.refusals import Forbidden, Refused, Unauthorized
from evenflow.api.tokens import SESSION_TTL_S, Caller, OperatorToken, SessionToken, Tokens, listed_id, new_jti
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving import users
from evenflow.store.serving.events import ORIGIN
from evenflow.store.serving.tokens import digest_of
from evenflow.store.serving.users import NewSession

_SECURE = "__Host-"  # browsers take a cookie whose name begins so over TLS alone, for this host alone
_SAFE = frozenset({"GET", "HEAD"})


async def caller(tokens: Tokens, scope: Scope) -> Caller:
    """Whose request it is: by its token, or by its cookie. Raises :class:`NotAllowed`."""
    shown = bearer(scope)
    if shown is not None:
        return await checked_token(tokens, shown)
    cookie = read_cookie(scope, tokens.installation)
    if cookie is None:
        raise Unauthorized("The request has no token (header Authorization: Bearer ...).", hint="Set EVENFLOW_TOKEN.")
    check_same_origin(scope)
    token = await tokens.admit(cookie)
    _told(listed_id(token))
    if not isinstance(token, SessionToken):
        raise Forbidden(
            "A cookie has a session, and no other token.", hint="Log in again: `evenflow ui` prints an address for that."
        )
    return token


async def checked_token(tokens: Tokens, text: str | None) -> OperatorToken:
    """The operator's token that ``text`` is. A session counts in its cookie alone. Raises :class:`NotAllowed`."""
    if not text:
        raise Unauthorized("The request has no token (header Authorization: Bearer ...).", hint="Set EVENFLOW_TOKEN.")
    token = await tokens.admit(text)
    _told(listed_id(token))
    if not isinstance(token, OperatorToken):
        raise Forbidden("Only an operator token may do this.", hint="On the host of the API it is in EVENFLOW_HOME/operator.token.")
    return token


def _told(token_id: int | None) -> None:
    if (origin := ORIGIN.get()) is not None:
        origin.token_id = token_id


async def begin_session(conn: AsyncConn, tokens: Tokens, begun: NewSession) -> tuple[str, float]:
    """The text of its token, and for how many seconds it is good: no longer than the token that it was begun with."""
    jti = new_jti()
    inserted = await users.insert_session(
        conn, begun, ttl=SESSION_TTL_S, most=limits.SESSIONS_EACH, key_id=tokens.key_id, digest=digest_of(jti)
    )
    if inserted is None:
        raise Unauthorized("The password was changed at this moment.", hint="Log in again.")
    token_id, expires_at = inserted
    ttl = expires_at.timestamp() - time()
    token = SessionToken(begun.name, token_id, begun.login_id, begun.user is not None)
    return tokens.for_session(token, jti, ttl=ttl), ttl


def check_same_origin(scope: Scope) -> None:
    """Browsers say which page made a request. An old one, or one that speaks plainly to another host than its own, says only where
    a page that changes something is from. Raises :class:`Forbidden`.
    """
    made_by, origin = header(scope, b"sec-fetch-site"), header(scope, b"origin")
    if made_by is not None:
        allowed = made_by == b"same-origin"
    elif origin is not None:
        allowed = _host_of(origin) == (header(scope, b"host") or b"no host").decode("latin-1").lower()
    else:
        allowed = scope["method"] in _SAFE
    if not allowed:
        raise Forbidden("A page of another origin made this request, and a session is for the pages of Evenflow alone.")


def _host_of(origin: bytes) -> str:
    try:
        return urlsplit(origin.decode("latin-1")).netloc.lower()
    except ValueError:
        return ""


class CookieKind(StrEnum):
    """What a browser keeps of Evenflow, by the end of its name."""

    SESSION = ""
    LOGIN = "-login"  # for the way to a provider of identities and back
    REFUSED = "-refused"  # why that refused the person, for the login page


def read_cookie(scope: Scope, installation: str, kind: CookieKind = CookieKind.SESSION, *, is_secure: bool = False) -> str | None:
    """Of this Evenflow. Browsers show cookies to all ports of a host, so those of others there have other names. Over TLS, or where
    the browser is known to speak it (``is_secure``), one that was set without it counts for nothing: anybody on the way could have
    set it, or a page of another host of the domain.
    """
    plain = _cookie_name(installation, kind)
    return _cookie(scope, _SECURE + plain, *(() if is_secure or scope["scheme"] == "https" else (plain,)))


def set_cookie(
    scope: Scope,
    installation: str,
    text: str,
    kind: CookieKind = CookieKind.SESSION,
    *,
    age_s: float = 0.0,
    is_secure: bool = False,
) -> str:
    """The value of the header that has a browser keep it for ``age_s`` seconds. Without that it is forgotten. ``is_secure``: the
    browser is known to speak TLS, also where a proxy ends it and the request does not say so. The one of a login is taken along
    from a page of another site, the provider's.
    """
    before, after = (_SECURE, "; Secure") if is_secure or _is_secure(scope) else ("", "")
    name, site = before + _cookie_name(installation, kind), "Lax" if kind is CookieKind.LOGIN else "Strict"
    return f"{name}={text}; Path=/; HttpOnly; SameSite={site}; Max-Age={age_s:.0f}{after}"


def _is_secure(scope: Scope) -> bool:
    return scope["scheme"] == "https" or (header(scope, b"origin") or b"").startswith(b"https://")  # before a proxy, too


def _cookie(scope: Scope, *names: str) -> str | None:
    """The first of these that the request has."""
    for key, value in scope["headers"]:
        if key == b"cookie":
            cookies = cookie_parser(value.decode("latin-1"))
            for name in names:
                if text := cookies.get(name):
                    return text
    return None


def _cookie_name(installation: str, kind: CookieKind) -> str:
    """The same on all API servers of this Evenflow, whichever port each has."""
    return f"evenflow-{installation}{kind}"


class WrongCode(Unauthorized):
    """A provider of identities never gave the code that a browser brought."""


class WrongPassword(Refused):
    """A person who is logged in has typed a wrong password."""


class WrongUserCode(Refused):
    """A person who is logged in has typed a code that no command line shows."""


class LoginLimit:
    """Limits failed logins from one address, for one name and in all, at this API server. For codes and tokens it delays only
    guesses, which are known as such, because many people share one address. A password cannot be known before it is checked, so a
    person who fails on purpose delays the others for a while: they have `evenflow ui`.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._failures: deque[tuple[float, str, str]] = deque()  # when, whence and for which name, the oldest first

    @contextmanager
    def attempt(self, address: str, name: str) -> Iterator[None]:
        """A look at a password, or at a code that is as short. It counts as failed until it is known better: many may be made at
        one moment. What ends otherwise, such as without a database, was no guess. Raises :class:`Refused`.
        """
        self.check(address, name)
        failure = (self._clock(), address, name)
        self._failures.append(failure)
        guessed = False
        try:
            yield
        except (Unauthorized, WrongPassword, WrongUserCode, CancelledError):
            guessed = True
            raise
        finally:
            if not guessed:
                with suppress(ValueError):  # old enough to be forgotten already
                    self._failures.remove(failure)

    def check(self, address: str, name: str = "") -> None:
        """Raises :class:`Refused`."""
        begin = self._clock() - limits.LOGIN_WINDOW
        while self._failures and self._failures[0][0] < begin:
            self._failures.popleft()
        here = sum(1 for _, whence, _ in self._failures if whence == address)
        named = sum(1 for _, _, other in self._failures if name and other == name)
        if here >= limits.LOGIN_FAILURES or named >= limits.LOGIN_FAILURES_NAME or len(self._failures) >= limits.LOGIN_FAILURES_ALL:
            raise Refused(
                429,
                "too_many_logins",
                f"Too many logins have failed: {limits.LOGIN_FAILURES} may in {limits.LOGIN_WINDOW:.0f} s.",
                hint="Wait, and try again.",
                retry_after_s=round(limits.LOGIN_WINDOW),
            )

    def failed(self, address: str) -> None:
        """Raises :class:`Refused`, when it is once too often."""
        self.check(address)
        self._failures.append((self._clock(), address, ""))
