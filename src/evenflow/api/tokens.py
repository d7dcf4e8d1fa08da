"""Who may ask for what. Tokens are JWTs (HS256) signed with a key that only the API's hosts know.

A *service token* stands for a kind of process: it registers, beats, claims, delivers DAGs. A *try token* stands for one try; what
it may touch follows from what is signed into it, so no try can speak for another. An *operator token* stands for a person. Tokens
are not stored: one is void when it expires or when the key is changed, and a try token also when its try is over.
"""

from __future__ import annotations

import base64
import hmac
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Literal, assert_never

import jwt
import msgspec

from evenflow.errors import NotAllowed

ServiceKind = Literal["worker", "processor", "triggerer"]
SERVICE_KINDS: tuple[ServiceKind, ...] = ("worker", "processor", "triggerer")

DAY_S = 86_400.0
SERVICE_TTL_S = 30 * DAY_S  # a service that runs for longer is given a new one at its next start
TRY_TTL_S = 30 * DAY_S  # above the longest task that anyone should run
OPERATOR_TTL_S = 365 * DAY_S  # it lies in a file of its owner's

CACHED_TOKENS = 16_384  # tries in flight on the workers of one API process, with room; about 10 MB when full

_ALGORITHM = "HS256"


@dataclass(frozen=True, slots=True)
class ServiceToken:
    kind: ServiceKind


@dataclass(frozen=True, slots=True)
class TryToken:
    epoch: int
    run_key: int
    task_index: int
    map_index: int
    try_number: int


@dataclass(frozen=True, slots=True)
class OperatorToken:
    name: str  # stands in the history beside what was done


Token = ServiceToken | TryToken | OperatorToken


def mint_service_token(key: bytes, kind: ServiceKind, *, ttl: float = SERVICE_TTL_S) -> str:
    return mint(key, ServiceToken(kind), ttl=ttl)


def mint_try_token(key: bytes, of: TryToken, *, ttl: float = TRY_TTL_S) -> str:
    return mint(key, of, ttl=ttl)


def mint_operator_token(key: bytes, *, name: str = "operator", ttl: float = OPERATOR_TTL_S) -> str:
    return mint(key, OperatorToken(name), ttl=ttl)


def mint(key: bytes, token: Token, *, ttl: float) -> str:
    """The token as text, good for ``ttl`` seconds from now."""
    claims: dict[str, Any]
    match token:
        case ServiceToken(kind):
            claims = {"k": kind}
        case TryToken(epoch, run_key, task_index, map_index, try_number):
            claims = {"k": "try", "e": epoch, "r": run_key, "t": task_index, "m": map_index, "n": try_number}
        case OperatorToken(name):
            claims = {"k": "operator", "sub": name}
        case _:
            assert_never(token)
    return _sign(key, {**claims, "exp": int(time.time() + ttl)})


def verify(key: bytes, text: str) -> Token:
    """What ``text`` stands for. Raises :class:`NotAllowed` when it is no token of ours, or has expired."""
    return _verified(key, text)[0]


class Tokens:
    """Minting and verifying under one key, with a memory: the tokens that an API process hands out with tries come back to it with
    each report, log chunk and XCom.

    ``operator_token`` is let in as it is, for a host that has its own way to hand out secrets.
    """

    def __init__(self, key: bytes, *, operator_token: str | None = None) -> None:
        self._key, self._operator_token = key, operator_token
        self._seen: OrderedDict[str, tuple[Token, float]] = OrderedDict()

    def for_try(self, of: TryToken) -> str:
        text = mint_try_token(self._key, of)
        self._remember(text, (of, time.time() + TRY_TTL_S))
        return text

    def verify(self, text: str) -> Token:
        """As the function :func:`verify`."""
        known = self._seen.get(text)
        if known is None:
            if self._operator_token and hmac.compare_digest(text.encode(), self._operator_token.encode()):
                return OperatorToken("operator")
            known = self._remember(text, _verified(self._key, text))
        if known[1] <= time.time():
            raise NotAllowed(_EXPIRED)
        return known[0]

    def _remember(self, text: str, known: tuple[Token, float]) -> tuple[Token, float]:
        self._seen[text] = known
        if len(self._seen) > CACHED_TOKENS:
            self._seen.popitem(last=False)
        return known


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


_EXPIRED = "The token has expired. Restart the service, or type `evenflow up` to make a new one."


_HEADER = _base64(msgspec.json.encode({"alg": _ALGORITHM, "typ": "JWT"}))


def _sign(key: bytes, claims: dict[str, Any]) -> str:
    """What ``jwt.encode`` makes, ten times as fast: that one examines the key each time, and every try needs a token."""
    signed = _HEADER + b"." + _base64(msgspec.json.encode(claims))
    return (signed + b"." + _base64(hmac.digest(key, signed, "sha256"))).decode()


def _verified(key: bytes, text: str) -> tuple[Token, float]:
    try:
        claims = jwt.decode(text, key, algorithms=[_ALGORITHM], options={"require": ["exp"]})
    except jwt.ExpiredSignatureError:
        raise NotAllowed(_EXPIRED) from None
    except jwt.InvalidTokenError:
        raise NotAllowed("The token is not one of this Evenflow's: it is damaged, or signed with another key.") from None
    expires = float(claims["exp"])
    match claims.get("k"):
        case "worker" | "processor" | "triggerer" as kind:
            return ServiceToken(kind), expires
        case "try":
            return TryToken(claims["e"], claims["r"], claims["t"], claims["m"], claims["n"]), expires
        case "operator":
            return OperatorToken(claims["sub"]), expires
        case _:
            raise NotAllowed("The token is of a kind that this Evenflow does not know. Upgrade Evenflow on this host.")
