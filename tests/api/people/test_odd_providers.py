"""What a provider of identities says of itself may be odd: it is told who is at fault, and one odd key shuts nobody out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from joserfc.jwk import RSAKey

from evenflow.api.identities import Identities
from evenflow.api.refusals import Refused
from evenflow.api.vault import Vault
from evenflow.core.people.identities import IdentityProvider

GOOD = RSAKey.generate_key(2048, {"kid": "good"}).as_dict(private=False)
ODD = [
    {"kty": "EC", "crv": "brainpoolP256r1", "kid": "a", "x": "AA", "y": "AA"},
    {"kty": "EC", "crv": "P-256", "kid": "b", "x": "AA", "y": "AA"},
    {**GOOD, "use": "tls"},
    {**GOOD, "kid": 7},
    "no key",
]


class OddProvider:
    def __init__(self) -> None:
        self.says: dict[str, Any] = {}
        self.keys: Any = [GOOD]
        self.address = ""

    async def tell(self, _: web.Request) -> web.Response:
        addresses = {"jwks_uri": "/keys", "authorization_endpoint": "/login", "token_endpoint": "/token"}
        told = {"issuer": self.address, **{name: self.address + path for name, path in addresses.items()}, **self.says}
        return web.json_response({name: value for name, value in told.items() if value != "left out"})

    async def tell_keys(self, _: web.Request) -> web.Response:
        return web.json_response({"keys": self.keys})


@pytest.fixture
async def odd() -> AsyncIterator[OddProvider]:
    provider, app = OddProvider(), web.Application()
    app.router.add_get("/.well-known/openid-configuration", provider.tell)
    app.router.add_get("/keys", provider.tell_keys)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    provider.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield provider
    await runner.cleanup()


async def begun(odd: OddProvider, tmp_path: Path) -> str:
    """Where a login leads."""
    known = IdentityProvider(issuer=odd.address, client_id="c", client_secret="s", url="http://127.0.0.1", groups={})
    address, _ = await Identities(known, Vault(tmp_path / "secrets", ())).begin("/")
    return address


async def test_keys_that_are_not_understood_are_passed_over(odd: OddProvider, tmp_path: Path) -> None:
    """R-SE3"""
    odd.keys = [*ODD, GOOD]
    assert (await begun(odd, tmp_path)).startswith(f"{odd.address}/login?")


@pytest.mark.parametrize("keys", [[], ODD[:2], None, "x"])
async def test_a_provider_without_a_key_is_told_of(odd: OddProvider, tmp_path: Path, keys: object) -> None:
    """R-SE3"""
    odd.keys = keys
    with pytest.raises(Refused, match="cannot be asked: it has no key that Evenflow understands"):
        await begun(odd, tmp_path)


@pytest.mark.parametrize("missing", ["jwks_uri", "authorization_endpoint", "token_endpoint"])
@pytest.mark.parametrize("value", ["left out", 3, None])
async def test_a_provider_that_says_too_little_is_told_of(odd: OddProvider, tmp_path: Path, missing: str, value: object) -> None:
    """R-SE3"""
    odd.says = {missing: value}
    with pytest.raises(Refused, match=f"cannot be asked: it does not say what its {missing} is"):
        await begun(odd, tmp_path)


async def test_scopes_that_are_not_told_are_none(odd: OddProvider, tmp_path: Path) -> None:
    odd.says = {"scopes_supported": None}
    assert "groups" not in await begun(odd, tmp_path)
