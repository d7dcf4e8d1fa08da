"""Makes tokens for people, tools and fleets: signs them, and puts them into the list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from evenflow.api.tokens import FLEET_TTL_S, LEASED_S, OPERATOR_TTL_S, FleetToken, OperatorToken, mint, new_jti
from evenflow.contracts.rest.tokens import GivenToken
from evenflow.core.people.roles import Role
from evenflow.core.people.scopes import Rights
from evenflow.core.service import USER_CODE_KINDS, TokenKind
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving import tokens
from evenflow.store.serving.tokens import KeyState, digest_of

LASTS_S: Mapping[TokenKind, float] = MappingProxyType({"operator": OPERATOR_TTL_S, **dict.fromkeys(USER_CODE_KINDS, FLEET_TTL_S)})
OPERATOR = Rights(Role.OPERATOR)


@dataclass(frozen=True, slots=True)
class TokenMaker:
    """Signs with the newest of ``keys``, and lists what it makes in the database of ``conn``."""

    conn: AsyncConn
    keys: KeyState

    async def make(
        self,
        kind: TokenKind,
        *,
        name: str,
        by: str,
        serves: Sequence[str] = (),
        rights: Rights = OPERATOR,
        ttl: float | None = None,
        leased: bool = False,
    ) -> GivenToken:
        """Makes a token that is valid for ``ttl`` seconds. ``name`` is the person's or the fleet's, ``rights`` are those of the
        person, ``serves`` lists what the fleet may serve: queues, or bundles; none: all. A ``leased`` token lapses unless it is
        renewed.
        """
        names, jti, lasts = sorted(set(serves)), new_jti(), LASTS_S[kind] if ttl is None else ttl
        token_id, expires_at = await tokens.insert_token(
            self.conn,
            kind=kind,
            name=name,
            scope=names,
            role=rights.role if kind == "operator" else None,
            limited_to=rights.scope,
            by=by,
            ttl=lasts,
            lease=LEASED_S if leased else None,
            key_id=max(self.keys.keys),
            digest=digest_of(jti),
        )
        token = OperatorToken(name, token_id) if kind == "operator" else FleetToken(kind, token_id, tuple(names))
        text = mint(self.keys, token, ttl=lasts, jti=jti)
        return GivenToken(token=text, token_id=token_id, kind=kind, name=name, expires_at=expires_at)
