"""Logging in by a provider of identities: the authorisation code flow of OpenID Connect, with PKCE, state and nonce.

A browser that begins a login gets a sealed cookie, and must bring it back: a login that another browser has begun leads nowhere.
The browser sends the cookie when the provider leads it back here, so it is not the cookie of a session. It is good for some
minutes, on any API server.
"""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic, time
from typing import Any, NamedTuple, cast
from urllib.parse import quote_plus, urlsplit

import aiohttp
import msgspec
from authlib.common.security import generate_token
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from yarl import URL

from evenflow.api import limits
from evenflow.api.bodies import read_answer
from evenflow.api.refusals import Refused, Unauthorized
from evenflow.api.sessions import WrongCode
from evenflow.api.vault import Vault
from evenflow.contracts.rest import IDENTITY, PREFIX
from evenflow.core.people.identities import IdentityProvider
from evenflow.core.people.scopes import Rights
from evenflow.core.people.user_names import flaw_of_user_name
from evenflow.errors import SecretsError

CALLBACK = f"{PREFIX}{IDENTITY}/callback"
_SEAL = "identity login"  # the kind that a login is sealed as
_SIGNED_BY = [
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
    "Ed25519",
]  # signatures that the provider alone can make: by no secret that both sides know
_DISCOVERY = "/.well-known/openid-configuration"


class BegunLogin(msgspec.Struct):
    """What the way back has to fit."""

    state: str
    nonce: str
    verifier: str
    until: float
    then: str  # the page to which it leads


class Identity(NamedTuple):
    subject: str  # for ever the same, of this provider
    name: str
    rights: Rights


@dataclass(slots=True)
class _KnownProvider:
    metadata: Mapping[str, Any]
    keys: KeySet
    until: float


class Identities:
    def __init__(self, provider: IdentityProvider, vault: Vault) -> None:
        self._provider, self._vault = provider, vault
        self._known: _KnownProvider | None = None

    @property
    def name(self) -> str:
        """As people know the provider."""
        return urlsplit(self._provider.issuer).hostname or self._provider.issuer

    @property
    def is_secure(self) -> bool:
        """Whether browsers find Evenflow by TLS."""
        return self._provider.url.startswith("https://")

    async def begin(self, then: str) -> tuple[str, str]:
        """Where a browser goes to log in, and what it brings back."""
        metadata = (await self._read()).metadata
        begun = BegunLogin(generate_token(43), generate_token(43), generate_token(64), time() + limits.IDENTITY_LOGIN, then)
        address = prepare_grant_uri(
            metadata["authorization_endpoint"],
            self._provider.client_id,
            "code",
            redirect_uri=self._provider.url + CALLBACK,
            scope="openid profile email groups" if "groups" in (metadata.get("scopes_supported") or ()) else "openid profile email",
            state=begun.state,
            nonce=begun.nonce,
            code_challenge=create_s256_code_challenge(begun.verifier),
            code_challenge_method="S256",
        )
        sealed = self._vault.seal(_SEAL, begun.state, msgspec.json.encode(begun).decode())
        return address, f"{begun.state}.{base64.urlsafe_b64encode(sealed).decode()}"

    async def end(self, brought: str, *, code: str, state: str) -> tuple[Identity, str]:
        """Returns the person who has logged in, and the page that follows. Raises :class:`NotAllowed` and :class:`Refused`."""
        begun = self._opened(brought)
        if not hmac.compare_digest(begun.state.encode(), state.encode()) or begun.until < time():
            raise _not_begun()
        answer = await self._redeem(code, begun.verifier)
        claims = await self._claims(str(answer.get("id_token", "")), begun.nonce, answer.get("access_token"))
        return self._identity(claims), begun.then

    async def end_address(self, then: str) -> str:
        """Where a browser is logged out of the provider, too; ``then`` where that has no such place."""
        metadata = (await self._read()).metadata
        if "end_session_endpoint" not in metadata:
            return then
        mine = {"client_id": self._provider.client_id, "post_logout_redirect_uri": f"{self._provider.url}{then}"}
        return str(URL(metadata["end_session_endpoint"]).update_query(mine))

    async def _redeem(self, code: str, verifier: str) -> dict[str, Any]:
        """What the provider gives for a code, once. Raises :class:`WrongCode` and :class:`Refused`."""
        address = (await self._read()).metadata["token_endpoint"]
        status, answer = await self._asked(
            "POST",
            address,
            data={
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": self._provider.url + CALLBACK,
                "code_verifier": verifier,
            },
            headers={"Authorization": _basic(self._provider.client_id, self._provider.client_secret)},
        )
        match status, answer.get("error"):
            case 200, _:
                return answer
            case 400, "invalid_grant":
                raise WrongCode(f"{self.name} has given nobody this code, or another browser has used it. Log in again.")
            case _, "invalid_client":
                raise self._silent("it does not know this client. EVENFLOW_IDENTITY_CLIENT_ID and _SECRET have to be those it gave")
            case _, error:
                raise self._silent(f"it answers with status {status} ({error!r:.100}) at {address}")

    def _opened(self, brought: str) -> BegunLogin:
        state, _, sealed = brought.partition(".")
        try:
            text = self._vault.open(_SEAL, state, base64.urlsafe_b64decode(sealed))
            return msgspec.json.decode(text, type=BegunLogin)
        except (SecretsError, ValueError, msgspec.MsgspecError):
            raise _not_begun() from None

    def _identity(self, claims: Mapping[str, Any]) -> Identity:
        name = str(claims.get(self._provider.name_claim) or claims["sub"])
        if (flaw := flaw_of_user_name(name)) is not None:
            raise Unauthorized(
                f"{self.name} calls this person {name!r:.120}, and here {flaw}.",
                hint="Change it there, or have EVENFLOW_IDENTITY_NAME_CLAIM name another claim.",
            )
        rights = self._provider.rights_of(self._groups(claims))
        if rights is None:
            raise Unauthorized(
                f"{name} is in no group of {self.name} that may log in here.", hint="EVENFLOW_IDENTITY_GROUPS says which may."
            )
        return Identity(f"{self._provider.issuer} {claims['sub']}", name, rights)

    def _groups(self, claims: Mapping[str, Any]) -> list[str]:
        """Raises :class:`Unauthorized`."""
        match told := claims.get(self._provider.groups_claim, []):
            case str():
                return [told]
            case list() if all(isinstance(group, str) for group in told):
                return told
        raise Unauthorized(
            f"{self.name} says of the groups (claim {self._provider.groups_claim!r}) {json.dumps(told):.100}, which is no list of "
            "names.",
            hint="Have it tell a list of texts there, or EVENFLOW_IDENTITY_GROUPS_CLAIM name another claim.",
        )

    async def _claims(self, token: str, nonce: str, access_token: Any) -> Mapping[str, Any]:
        """Of an ID token that is the provider's, for this Evenflow, for this login. Raises :class:`Unauthorized`."""
        try:
            signed = await self._decoded(token)
            claims = CodeIDToken(
                signed.claims,
                signed.header,
                {
                    "iss": {"essential": True, "value": self._provider.issuer},
                    "aud": {"essential": True, "value": self._provider.client_id},
                },
                {"nonce": nonce, "client_id": self._provider.client_id, "access_token": access_token},
            )
            claims.validate(leeway=limits.IDENTITY_CLOCK)
        except (JoseError, ValueError, KeyError) as error:
            raise Unauthorized(f"What {self.name} says of the login is not to be believed: {error}") from None
        return cast(Mapping[str, Any], claims)

    async def _decoded(self, token: str) -> jwt.Token:
        try:
            return jwt.decode(token, (await self._read()).keys, algorithms=_SIGNED_BY)
        except (JoseError, ValueError):
            self._known = None  # its keys may have changed meanwhile
            return jwt.decode(token, (await self._read()).keys, algorithms=_SIGNED_BY)

    async def _read(self) -> _KnownProvider:
        """What the provider says of itself. Raises :class:`Refused`."""
        if self._known is None or self._known.until < monotonic():
            metadata = await self._ask("GET", self._provider.issuer.rstrip("/") + _DISCOVERY)
            if metadata.get("issuer") != self._provider.issuer:
                raise self._silent(f"it calls itself {metadata.get('issuer')!r:.200}, not {self._provider.issuer!r}")
            for address in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
                if not isinstance(metadata.get(address), str):
                    raise self._silent(f"it does not say what its {address} is")
            keys = _key_set(await self._ask("GET", metadata["jwks_uri"]))
            if not keys.keys:
                raise self._silent(f"it has no key that Evenflow understands at {metadata['jwks_uri']}")
            self._known = _KnownProvider(metadata, keys, monotonic() + limits.IDENTITY_KEPT)
        return self._known

    async def _ask(self, method: str, url: str) -> dict[str, Any]:
        status, found = await self._asked(method, url)
        if status != 200:
            raise self._silent(f"it answers with status {status} at {url}")
        return found

    async def _asked(self, method: str, url: str, **given: Any) -> tuple[int, dict[str, Any]]:
        """Status and object of an answer."""
        timeout = aiohttp.ClientTimeout(total=limits.IDENTITY_ANSWERS)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as http,
                http.request(method, url, allow_redirects=False, **given) as answer,
            ):
                body = await read_answer(answer, limits.IDENTITY_BODY)
                if body is None:
                    raise self._silent(f"it answers with more than {limits.IDENTITY_BODY:,} bytes at {url}")
                status, found = answer.status, _object(body)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise self._silent(f"{type(error).__name__} at {url}") from None
        if found is None:
            raise self._silent(f"it answers with status {status} and no object at {url}")
        return status, found

    def _silent(self, why: str) -> Refused:
        return Refused(
            502,
            "unreachable",
            f"{self.name}, where people log in, cannot be asked: {why}.",
            hint="A password or `evenflow ui` still lets in.",
        )


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(body)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _basic(client_id: str, secret: str) -> str:
    """As RFC 6749 (2.3.1) has it: both are encoded as in forms before."""
    return "Basic " + base64.b64encode(f"{quote_plus(client_id)}:{quote_plus(secret)}".encode()).decode()


def _not_begun() -> Unauthorized:
    return Unauthorized(
        "This login was not begun in this browser, or too long ago.", hint="Begin it again on the page where one logs in."
    )


def _key_set(found: Mapping[str, Any]) -> KeySet:
    """Keys that are not understood are passed over (RFC 7517, section 5)."""
    keys = []
    for key in found["keys"] if isinstance(found.get("keys"), list) else []:
        try:
            keys += KeySet.import_key_set({"keys": [key]}).keys
        except (JoseError, ValueError, KeyError, TypeError):
            continue
    return KeySet(keys)
