"""How a command line is logged in as a person who has no token and whose browser is elsewhere, as RFC 8628 has it.

The command line asks for two codes and shows the short one. The person types it into the web UI, where they are logged in, reads
which machine asks, and answers. Until then the command line asks with the long code; then it gets a token of that user. No address
contains a code, so no link that another person sends answers by itself. A short code is one of 25,600 million; wrong codes delay a
person as wrong passwords do.
"""

from __future__ import annotations

import secrets

from fastapi import Request

from evenflow.api import limits
from evenflow.api.refusals import Forbidden, Refused, Unauthorized
from evenflow.api.rest.context import Connection, InContext, address_of, caller_of
from evenflow.api.rest.routes import Routes
from evenflow.api.sessions import WrongUserCode
from evenflow.api.tokens import DAY_S, OperatorToken, SessionToken, new_jti
from evenflow.contracts.rest.device_logins import (
    AskingDevice,
    DeviceAnswer,
    DeviceLogin,
    DeviceLoginRequest,
    DeviceToken,
    DeviceTokenRequest,
    UserCodeRequest,
)
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import ScopedBy
from evenflow.store.db.connect import AsyncConn, Row
from evenflow.store.serving import device_logins
from evenflow.store.serving.tokens import digest_of

routes = Routes("Sessions")  # for users who are logged in in a browser
doors = Routes("Sessions", prefix="/device-logins")  # for command lines that are not

_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels: no words; as RFC 8628, 6.1 has them
_CODE_CHARS = 8


@doors.post("", None, status_code=201)
async def begin_device_login(conn: Connection, within: InContext, http: Request, request: DeviceLoginRequest) -> DeviceLogin:
    """Asks to be logged in. A person types the short code at ``/device``."""
    letters = "".join(secrets.choice(_LETTERS) for _ in range(_CODE_CHARS))
    code = within.tokens.code("device code")
    expires_at = await device_logins.begin(
        conn,
        code=code,
        user_digest=within.tokens.digests_of(letters)[0],
        machine=request.machine,
        address=address_of(http),
        role=request.role,
        days=request.days,
        ttl=limits.DEVICE_LOGIN,
        most=limits.DEVICE_LOGINS,
        most_here=limits.DEVICE_LOGINS_HERE,
    )
    if expires_at is None:
        raise Refused(
            429,
            "too_many_logins",
            f"Too many command lines wait to be logged in: {limits.DEVICE_LOGINS_HERE} may of one address, "
            f"{limits.DEVICE_LOGINS:,} of all.",
            hint="Answer one, or wait some minutes.",
            retry_after_s=60,
        )
    shown = f"{letters[:4]}-{letters[4:]}"
    return DeviceLogin(device_code=code, user_code=shown, interval_s=limits.DEVICE_POLL, expires_at=expires_at)


@doors.post("/token", None)
async def take_device_token(conn: Connection, within: InContext, request: DeviceTokenRequest) -> DeviceToken:
    """Returns whether a person has answered. The token is told once; a command line that asks too often is told to ask less."""
    if not within.tokens.has_made(request.device_code, "device code"):
        raise Unauthorized(_OVER, hint="Type again: evenflow login")
    async with conn.transaction():  # a caller that is not given the token may ask again
        polled = await device_logins.poll(conn, request.device_code)
        if polled is None:
            raise Unauthorized(_OVER, hint="Type again: evenflow login")
        if polled.is_approved is None:
            is_hasty = polled.polled_s is not None and polled.polled_s < limits.DEVICE_POLL / 2
            pause = limits.DEVICE_POLL * (2 if is_hasty else 1)
            return DeviceToken(token=None, name=None, role=None, expires_at=None, interval_s=pause)
        if polled.is_approved:
            jti, ttl = new_jti(), polled.days * DAY_S
            token_id, expires_at = await device_logins.give(
                conn, polled, ttl=ttl, most=limits.DEVICE_TOKENS_EACH, key_id=within.tokens.key_id, digest=digest_of(jti)
            )
            text = within.tokens.for_user(OperatorToken(polled.answered_by, token_id), jti, ttl=ttl)
            return DeviceToken(
                token=text, name=polled.answered_by, role=Role(polled.role), expires_at=expires_at, interval_s=limits.DEVICE_POLL
            )
    raise Forbidden(f"{polled.answered_by} has said no.")


_OVER = "Nobody has answered in time, or the code was used before."


@routes.post("/device-logins/find", Role.VIEWER, ScopedBy.OWN)
async def find_device_login(conn: Connection, within: InContext, http: Request, request: UserCodeRequest) -> AskingDevice:
    """Shows which command line has this code, so that the person who answers reads what it asks for."""
    person = _person(http)
    with within.logins.attempt(address_of(http), person.name):
        return _told(await device_logins.find(conn, _digests(within, request.user_code)), person)


@routes.post("/device-logins/answer", Role.VIEWER, ScopedBy.OWN)
async def answer_device_login(conn: Connection, within: InContext, http: Request, request: DeviceAnswer) -> AskingDevice:
    """Lets a command line have a token of yours, or refuses it."""
    person = _person(http)
    with within.logins.attempt(address_of(http), person.name):
        return await _answered(conn, _digests(within, request.user_code), request, person)


async def _answered(conn: AsyncConn, digests: list[bytes], request: DeviceAnswer, person: SessionToken) -> AskingDevice:
    asked = _told(await device_logins.find(conn, digests), person)
    role = _lesser(request.role or Role(asked.role), person.role)
    days = request.days or asked.days
    done = await device_logins.answer(conn, digests, is_approved=request.is_approved, role=role, days=days, by=person.name)
    return _told(done, person)


def _person(http: Request) -> SessionToken:
    """Returns the caller, if they are a user who is logged in in a browser. Raises :class:`Forbidden`."""
    caller = caller_of(http)
    if not (isinstance(caller, SessionToken) and caller.by_password):
        raise Forbidden(
            "Only a user who has logged in in a browser answers command lines.",
            hint="Log in with a name and a password or by single sign-on; whoever has a token sets EVENFLOW_TOKEN to it there.",
        )
    return caller


def _digests(within: InContext, typed: str) -> list[bytes]:
    return within.tokens.digests_of("".join(char for char in typed.upper() if char in _LETTERS))


def _told(found: Row | None, person: SessionToken) -> AskingDevice:
    """Raises :class:`WrongUserCode`."""
    if found is None:
        raise WrongUserCode(
            404,
            "not_found",
            "No command line shows this code: it is mistyped, was answered, or its time is over. Type: evenflow login",
        )
    asked = Role(found["role"]) if found["role"] else person.role
    return AskingDevice.model_validate({**found, "role": _lesser(asked, person.role)})


def _lesser(one: Role, other: Role) -> Role:
    return one if other.allows(one) else other
