"""Who may ask for what. Tokens are JWTs (HS256) signed with keys that only the API's hosts know; the header says with which (kid).

A *fleet token* stands for a kind of process that may come and register, and is good for nothing else; it may name the queues or
bundles that these may serve. One that a launcher makes for a pod names the one try that is to run there: the worker of that pod
may claim that try and no other, while it is not over. A *service token* is what such a process gets when it registers: it stands
for this one service, has the scope of its fleet, and is renewed by its beats. A *try token* stands for one try, a *trigger token*
for one claim of the trigger that a try waits for; what it may touch follows from what is signed into it, so no try can speak for
another. An *operator token* stands for a person.

Each names the Evenflow that it belongs to (iss), the interface that it opens (aud: `rest` for people, `execution` for services),
when it was made (iat) and itself (jti). Tokens of people and of fleets stand in a list, with a digest of that name; a service's
token has its fleet's. So a person who has the keys and reads the database can make none of these, because the names are not there.
Fleet tokens for one try stand in no list, like try tokens: they are void with their try.

The text of a token is stored nowhere. A token is void when it expires, when its key is gone, or when it (or the fleet token that it
came from) is revoked. A token on a lease is void when its maker does not renew the lease, and a try token when its try is over.
Tokens of services and tries are also void when the database was set back to an earlier state: they belong to one incarnation of it.

The operator token of `evenflow login` belongs to a user: it is good while they may log in, and allows only what they may do.

A *session token* is what a browser gets in a cookie when a person logs in. It is in the list as an operator's is. One that was
begun with a token is good for no longer than that; one that was begun with a password ends when that is changed, or the person is
disabled. What a person's token or session may do is not signed into it: its role and scope are in the list, and count as they are
there.
"""

from __future__ import annotations

import base64
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, assert_never

import jwt
import msgspec
from jwt.types import Options

from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import PersonScope
from evenflow.core.service import USER_CODE_KINDS, UserCodeKind
from evenflow.errors import KeyNotKnownYet, NotAllowed
from evenflow.store.scheduling.tasks import TryKey
from evenflow.store.serving.tokens import KeyState, digest_of
from evenflow.store.serving.triggers import TriggerKey

FLEETS = tuple(f"{kind} fleet" for kind in USER_CODE_KINDS)  # as refusals name the kinds of fleet tokens

DAY_S = 86_400.0
FLEET_TTL_S = 30 * DAY_S  # running services no longer need it; services that start, or are lost and come back, show it again
SERVICE_TTL_S = 1 * DAY_S  # a beat renews it when half of that is left, so an outage of twelve hours costs no registration
TRY_TTL_S = 400 * DAY_S  # above the longest `execution_timeout`: nothing renews it, and it is void with its try
TRIGGER_TTL_S = 400 * DAY_S  # above the longest that a task may wait; each claim has a new one, and is void with it
OPERATOR_TTL_S = 90 * DAY_S  # it lies in a file of its owner's
SESSION_TTL_S = 0.5 * DAY_S  # a working day: it lies in a browser
LEASED_TTL_S = 365 * DAY_S  # of what an `evenflow up` makes and renews: above the longest that one should run
LEASED_S = 3600.0  # of that, unless it is renewed: for this time it stays good after an `evenflow up` was killed
RENEW_S = 600.0  # how often it is: six times, so that a database that is away for a while voids nothing

CACHED_TOKENS = 16_384  # tries in flight on the workers of one API process, with room; about 10 MB when full

Audience = Literal["rest", "execution"]
CodeKind = Literal["login code", "device code"]  # what a browser logs in with, and what a command line asks with

_ALGORITHM = "HS256"
# The audience follows from the kind, which is known later. The clock of the host that made a token may be ahead.
_OPTIONS: Options = {"require": ["exp", "iss", "aud", "iat", "jti"], "verify_aud": False, "verify_iat": False}
_JTI_BYTES = 16  # the digest does not reveal it
_CODE_CHARS = 22  # of a login code before its signature: the same number of bytes in Base64


@dataclass(frozen=True, slots=True)
class FleetToken:
    kind: UserCodeKind
    token_id: int = 0  # by which it can be revoked
    scope: tuple[str, ...] = ()  # queues, of a processor bundles, that its services may serve; none: all
    jti: str = field(default="", compare=False)  # its name, which the list has a digest of
    epoch: int = 0  # of the one try that its worker may claim; 0: any of these queues
    worker: str = ""  # the name of that worker, if it is decided already


@dataclass(frozen=True, slots=True)
class ServiceToken:
    kind: UserCodeKind
    service_id: int
    fleet_id: int = 0  # the fleet token that it registered with
    scope: tuple[str, ...] = ()  # that token's
    fleet_jti: str = field(default="", compare=False)
    epoch: int = 0  # that token's


@dataclass(frozen=True, slots=True)
class TryToken(TryKey):
    try_number: int


@dataclass(frozen=True, slots=True)
class TriggerToken(TriggerKey):
    try_number: int

    @property
    def of_try(self) -> TryToken:
        return TryToken(self.epoch, self.run_key, self.task_index, self.map_index, self.try_number)


@dataclass(frozen=True, slots=True)
class OperatorToken:
    name: str  # stands in the history beside what was done
    token_id: int = 0
    role: Role = field(default=Role.VIEWER, compare=False)  # as the list has it
    scope: PersonScope | None = field(default=None, compare=False)  # so, too; None: everywhere
    is_personal: bool = field(default=False, compare=False)  # a user's, with the user's name


@dataclass(frozen=True, slots=True)
class SessionToken:
    """A person's in a browser; ``login_id`` is the token that they logged in with, 0 one that is in no list, or a password."""

    name: str
    token_id: int
    login_id: int
    by_password: bool = False
    role: Role = field(default=Role.VIEWER, compare=False)  # as the list has it
    scope: PersonScope | None = field(default=None, compare=False)  # so, too; None: everywhere
    is_vouched: bool = field(default=False, compare=False)  # by a provider of identities


Caller = OperatorToken | SessionToken  # callers of REST
Token = FleetToken | ServiceToken | TryToken | TriggerToken | Caller


def listed_id(token: Token) -> int | None:
    """The number in the list of tokens of what was given out: of this one, or of that which a service came with."""
    match token:
        case (
            FleetToken(token_id=number)
            | ServiceToken(fleet_id=number)
            | OperatorToken(token_id=number)
            | SessionToken(token_id=number)
        ):
            return number or None
        case _:
            return None


def new_jti() -> str:
    return secrets.token_urlsafe(_JTI_BYTES)


def mint(state: KeyState, token: Token, *, ttl: float, jti: str | None = None) -> str:
    """The token as text, good for ``ttl`` seconds from now; ``jti`` is the name under which it is listed, if it is."""
    claims: dict[str, Any]
    match token:
        case FleetToken(kind, token_id, scope, _, epoch, worker):
            jti = jti or token.jti
            claims = {"k": kind, "j": token_id, **_scoped(scope)}
            claims |= {"e": epoch, "i": state.incarnation, "w": worker} if epoch else {}
        case ServiceToken(kind, service_id, fleet_id, scope, fleet_jti, epoch):
            claims = {"k": kind, "s": service_id, "j": fleet_id, "f": fleet_jti, "i": state.incarnation, **_scoped(scope)}
            claims |= {"e": epoch} if epoch else {}
        case TryToken(epoch, run_key, task_index, map_index, try_number):
            claims = {
                "k": "try",
                "e": epoch,
                "r": run_key,
                "t": task_index,
                "m": map_index,
                "n": try_number,
                "i": state.incarnation,
            }
        case TriggerToken(epoch, run_key, task_index, map_index, claim, try_number):
            claims = {
                "k": "trigger",
                "e": epoch,
                "r": run_key,
                "t": task_index,
                "m": map_index,
                "n": try_number,
                "c": claim,
                "i": state.incarnation,
            }
        case OperatorToken(name, token_id):
            claims = {"k": "operator", "sub": name, "j": token_id}
        case SessionToken(name, token_id, login_id, by_password):
            claims = {"k": "session", "sub": name, "j": token_id, "p": login_id, "w": by_password}
        case _:
            assert_never(token)
    made = {"iss": state.installation, "aud": _audience(token), "jti": jti or new_jti()}
    return _sign(state, {**claims, **made, "iat": int(now := time.time()), "exp": int(now + ttl)})


def _audience(token: Token) -> Audience:
    return "rest" if isinstance(token, Caller) else "execution"


def verify(state: KeyState, text: str) -> Token:
    """Returns what ``text`` stands for. Raises :class:`NotAllowed` when it is not a token of ours or no longer good, and
    :class:`KeyNotKnownYet`.
    """
    return _verified(state, text).token


class NotListed(NotAllowed):
    """The token is signed with the right key, and is not in the list as it was read last."""


@dataclass(frozen=True, slots=True)
class _Verified:
    token: Token
    key_id: int
    expires: float


class Tokens:
    """Minting and verifying under the keys that the database has, with a memory: the tokens that an API process hands out with
    tries come back to it with each report, log chunk and XCom.

    ``operator_token`` is let in as it is, for a host that has its own way to hand out secrets.
    """

    def __init__(self, state: KeyState, *, operator_token: str | None = None) -> None:
        self._operator_token = operator_token
        self._seen: OrderedDict[str, _Verified] = OrderedDict()
        self.look: Callable[[], Awaitable[None]] | None = None  # reads the list anew
        self.use(state)

    def use(self, state: KeyState) -> None:
        """From now on these keys count, and nothing that was found good before."""
        self._seen.clear()
        self._state, self._newest = state, max(state.keys)

    def for_try(self, of: TryToken) -> str:
        text = mint(self._state, of, ttl=TRY_TTL_S)
        self._remember(text, _Verified(of, self._newest, time.time() + TRY_TTL_S))
        return text

    def for_trigger(self, of: TriggerToken) -> str:
        """Not remembered: most triggers say nothing until their event."""
        return mint(self._state, of, ttl=TRIGGER_TTL_S)

    def for_service(self, fleet: FleetToken, service_id: int) -> str:
        """The own token of a service that registered with ``fleet``."""
        own = ServiceToken(fleet.kind, service_id, fleet.token_id, fleet.scope, fleet.jti, fleet.epoch)
        return mint(self._state, own, ttl=SERVICE_TTL_S)

    @property
    def keys(self) -> KeyState:
        """Those that count now."""
        return self._state

    @property
    def key_id(self) -> int:
        """The key that signs."""
        return self._newest

    @property
    def installation(self) -> str:
        """Which Evenflow this is."""
        return self._state.installation

    def for_session(self, of: SessionToken, jti: str, *, ttl: float) -> str:
        """``jti`` is the name under which it is listed."""
        return mint(self._state, of, ttl=ttl, jti=jti)

    def for_user(self, of: OperatorToken, jti: str, *, ttl: float) -> str:
        """``jti`` is the name under which it is listed."""
        return mint(self._state, of, ttl=ttl, jti=jti)

    def code(self, kind: CodeKind) -> str:
        """A new one. It is signed, so that guesses are known as such without a look into the database."""
        jti = new_jti()
        return jti + _code_sign(self._state.keys[self._newest], kind, jti)

    def has_made(self, code: str, kind: CodeKind) -> bool:
        """Whether one of the keys has signed ``code``, be it good or not any more."""
        jti, sign = code[:_CODE_CHARS], code[_CODE_CHARS:].encode()
        return any(hmac.compare_digest(_code_sign(key, kind, jti).encode(), sign) for key in self._state.keys.values())

    def digests_of(self, short_code: str) -> list[bytes]:
        """Returns what is stored of a code that people type, that of the newest key first. A reader of the database cannot try all
        codes, because the keys are not there.
        """
        keys = [self._state.keys[number] for number in sorted(self._state.keys, reverse=True)]
        return [hmac.digest(key, b"user code " + short_code.encode(), "sha256") for key in keys]

    def renewed(self, text: str) -> str | None:
        """A fresh one in place of a service's token that is half over or was signed with the key before; else none."""
        verified = self._verified(text)
        if verified.key_id == self._newest and verified.expires - time.time() > SERVICE_TTL_S / 2:
            return None
        return mint(self._state, verified.token, ttl=SERVICE_TTL_S)

    async def admit(self, text: str) -> Token:
        """As ``verify``, for what a request shows: a token that was made a moment ago may not be in the list that was read last."""
        try:
            return self.verify(text)
        except NotListed:
            if self.look is None:
                raise
            await self.look()
            return self.verify(text)

    def verify(self, text: str) -> Token:
        """As the function :func:`verify`."""
        if self._operator_token and hmac.compare_digest(text.encode(), self._operator_token.encode()):
            return OperatorToken("operator", role=Role.ADMIN)
        return self._verified(text).token

    def _verified(self, text: str) -> _Verified:
        known = self._seen.get(text)
        if known is None:
            known = self._remember(text, _verified(self._state, text))
        if known.expires <= time.time():
            raise NotAllowed(_EXPIRED, hint=_NEW_ONE)
        return known

    def _remember(self, text: str, known: _Verified) -> _Verified:
        self._seen[text] = known
        if len(self._seen) > CACHED_TOKENS:
            self._seen.popitem(last=False)
        return known


_NEW_ONE = (
    "An admin makes a new one (evenflow tokens create); where the database is, --database makes one; `evenflow up` makes its own."
)
_EXPIRED = "The token has expired."
_REVOKED = "The token was revoked."
_LAPSED = "The `evenflow up` or `evenflow run` that made the token has gone, or could not reach its database for an hour."
_LOGGED_OUT = "The user or token that this session or token was begun with is not good any more."
_LOG_IN = "Log in again: `evenflow ui` prints an address for a browser, `evenflow login` logs in the command line."
_NOT_LISTED = (
    "The token is not in this Evenflow's list (evenflow tokens list): that was set back to before it was made, or somebody who has "
    "the keys made it, and then type `evenflow tokens rotate --at-once`."
)
_SET_BACK = "The token is of before the database was set back to a backup. The service registers anew; what it had in hand is void."
_NOT_OURS = "The token is not one of this Evenflow's: it is damaged, or signed with a key that is not in use."


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _code_sign(key: bytes, kind: CodeKind, jti: str) -> str:
    return _base64(hmac.digest(key, f"{kind} {jti}".encode(), "sha256")[:_JTI_BYTES]).decode()


def _sign(state: KeyState, claims: dict[str, Any]) -> str:
    """What ``jwt.encode`` makes, ten times as fast: that one examines the key each time, and every try needs a token."""
    newest = max(state.keys)
    signed = _header(newest) + b"." + _base64(msgspec.json.encode(claims))
    return (signed + b"." + _base64(hmac.digest(state.keys[newest], signed, "sha256"))).decode()


@cache
def _header(key_id: int) -> bytes:
    return _base64(msgspec.json.encode({"alg": _ALGORITHM, "kid": str(key_id), "typ": "JWT"}))


def _verified(state: KeyState, text: str) -> _Verified:
    try:
        _check_issuer(state, text)
        key_id = int(jwt.get_unverified_header(text)["kid"])
        if key_id > (newest := max(state.keys)):
            raise KeyNotKnownYet(
                f"The token was signed with key {key_id}, and this API has read keys up to {newest}.",
                hint="It reads new ones within moments; if this goes on, the token is another Evenflow's.",
            )
        claims = jwt.decode(text, state.keys[key_id], algorithms=[_ALGORITHM], options=_OPTIONS)
    except jwt.ExpiredSignatureError:
        raise NotAllowed(_EXPIRED, hint=_NEW_ONE) from None
    except (jwt.InvalidTokenError, KeyError, ValueError, TypeError):
        raise NotAllowed(_NOT_OURS, hint=_NEW_ONE) from None
    if claims.get("j") in state.revoked:
        raise NotAllowed(_REVOKED, hint=_NEW_ONE)
    token = _token(claims)
    if isinstance(token, FleetToken | OperatorToken) and claims.get("j") in state.lapsed:  # a service that is here may stay
        raise NotAllowed(_LAPSED, hint=_NEW_ONE)
    if claims["aud"] != _audience(token):
        raise NotAllowed(_NOT_OURS, hint=_NEW_ONE)
    of_one_try = isinstance(token, FleetToken | ServiceToken) and token.epoch > 0
    if (of_one_try or isinstance(token, ServiceToken | TryToken | TriggerToken)) and claims.get("i", 0) != state.incarnation:
        raise NotAllowed(_SET_BACK)
    if (
        isinstance(token, SessionToken)
        and token.login_id
        and (token.login_id not in state.listed or token.login_id in state.lapsed)
    ):
        raise NotAllowed(_LOGGED_OUT, hint=_LOG_IN)
    if not of_one_try and not isinstance(token, TryToken | TriggerToken):
        listed = token.fleet_jti if isinstance(token, ServiceToken) else claims["jti"]
        if state.listed.get(claims.get("j", 0)) != digest_of(listed):
            raise NotListed(_NOT_LISTED, hint=_NEW_ONE)
    if isinstance(token, Caller):
        rights = state.rights.get(claims["j"])
        if rights is None:
            raise NotAllowed(_LOGGED_OUT, hint=_LOG_IN)
        token = replace(token, role=rights.role, scope=rights.scope)
        if isinstance(token, SessionToken):
            token = replace(token, is_vouched=rights.is_vouched)
        else:
            token = replace(token, is_personal=rights.is_personal)
    return _Verified(token, key_id, float(claims["exp"]))


def _check_issuer(state: KeyState, text: str) -> None:
    """What is read here is not believed, and good for a clear answer only: the key decides. Raises :class:`NotAllowed`."""
    issuer = jwt.decode(text, options={"verify_signature": False}).get("iss")
    if issuer != state.installation:
        raise NotAllowed(f"The token is of another Evenflow ({issuer!r:.60}); this one is {state.installation!r}.", hint=_NEW_ONE)


def _scoped(scope: tuple[str, ...]) -> dict[str, Any]:
    return {"q": scope} if scope else {}


def _token(claims: dict[str, Any]) -> Token:
    match claims.get("k"):
        case "worker" | "processor" | "triggerer" as kind:
            token_id = claims.get("j", 0)
            scope, epoch = tuple(claims.get("q", ())), claims.get("e", 0)
            if "s" in claims:
                return ServiceToken(kind, claims["s"], token_id, scope, claims.get("f", ""), epoch)
            return FleetToken(kind, token_id, scope, claims["jti"], epoch, claims.get("w", ""))
        case "try":
            return TryToken(claims["e"], claims["r"], claims["t"], claims["m"], claims["n"])
        case "trigger":
            return TriggerToken(claims["e"], claims["r"], claims["t"], claims["m"], claims["c"], claims["n"])
        case "operator":
            return OperatorToken(claims["sub"], claims.get("j", 0))
        case "session":
            return SessionToken(claims["sub"], claims["j"], claims["p"], claims["w"])
        case _:
            raise NotAllowed("The token is of a kind that this Evenflow does not know.", hint="Upgrade Evenflow on this host.")
