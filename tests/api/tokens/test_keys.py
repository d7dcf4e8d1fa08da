"""Two APIs with different keys: each notices it before it serves anybody."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evenflow.api.service import ApiService
from evenflow.api.tokens import OperatorToken, mint, verify
from evenflow.api.vault import Vault, new_key
from evenflow.errors import NotAllowed, SecretsError
from evenflow.runtime.tokens import rotate_keys
from evenflow.store.serving.tokens import KeyState
from tests.api.world import World
from tests.apis import make_api
from tests.tokens import create_token, key_state

Start = Callable[[Vault], Awaitable[ApiService]]


@pytest.fixture
def start(database_url: str, tmp_path: Path) -> Start:
    async def start_and_stop(vault: Vault) -> ApiService:
        service = make_api(database_url, tmp_path, name="api2", vault=vault)
        try:
            await service.start()
        finally:
            await service.stop()
        return service

    return start_and_stop


async def test_an_api_with_other_keys_does_not_start(world: World, start: Start, tmp_path: Path) -> None:
    """Also before anything is sealed: the first API has its keys, and this one makes none of its own."""
    other = tmp_path / "other" / "secrets.key"
    other.parent.mkdir()
    for vault in (Vault(other), Vault(other, new_key())):
        with pytest.raises(SecretsError) as refused:
            await start(vault)
        assert f"made on host '{socket.gethostname()}'. Copy secrets.key" in str(refused.value)
        assert str(other) in str(refused.value)
        assert not other.exists()
    other.write_text((tmp_path / "secrets.key").read_text())
    await start(Vault(other))


async def test_keys_on_which_nothing_depends_are_replaced(db: psycopg.Connection[Any], start: Start, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        await start(Vault(tmp_path / name / "secrets.key"))
    sealed = Vault(tmp_path / "second" / "secrets.key").seal("variable", "v", "1")
    db.execute("insert into sealed_value (kind, name, sealed, changed_by) values ('variable', 'v', %s, 'ada')", [sealed])
    with pytest.raises(SecretsError, match="If those keys are lost for good"):
        await start(Vault(tmp_path / "first" / "secrets.key"))
    db.execute("delete from sealed_value")
    await start(Vault(tmp_path / "first" / "secrets.key"))


async def test_the_database_alone_makes_no_token_and_opens_nothing(
    world: World, database_url: str, start: Start, tmp_path: Path
) -> None:
    """R-SE1: whoever reads all of it has the keys of tokens as little as passwords, and so has who brings keys of his own."""
    vault = Vault(tmp_path / "secrets.key")
    await create_token(database_url, vault, "operator", name="ada", by="ada")
    (state,) = (KeyState("", {1: value}, frozenset(), {}, 0, 0.0) for value in world.all("select value from token_key"))
    installation = world.one("select id from installation")
    forged = mint(replace(state, installation=installation), OperatorToken("eve"), ttl=60)
    with pytest.raises(NotAllowed, match="not one of this Evenflow's"):
        verify(key_state(world.conn), forged)
    other = Vault(tmp_path / "other.key", new_key())
    for attempt in (
        create_token(database_url, other, "operator", name="eve", by="eve"),
        rotate_keys(database_url, other, at_once=True, by="eve"),
    ):
        with pytest.raises(SecretsError, match="are not those in use"):
            await attempt
    assert world.all("select key_id from token_key") == [1]
    with pytest.raises(SecretsError, match="not those in use"):
        await create_token(database_url, Vault(tmp_path / "none.key"), "worker", name="w", by="eve")
    assert not (tmp_path / "none.key").exists()


async def test_keys_that_somebody_still_needs_are_not_replaced(
    database_url: str, db: psycopg.Connection[Any], start: Start, tmp_path: Path
) -> None:
    """A token that was made before the first API started would be good for nothing there."""
    await create_token(database_url, Vault(tmp_path / "here.key"), "worker", name="w", by="ada")
    with pytest.raises(SecretsError, match="If those keys are lost for good"):
        await start(Vault(tmp_path / "there.key"))
    db.execute("update token set revoked_at = now()")
    await start(Vault(tmp_path / "there.key"))


@pytest.mark.parametrize("keys", ["", ",", "short", "a" * 43 + "!", "A" * 36])
def test_keys_that_are_none_are_refused(keys: str, tmp_path: Path) -> None:
    (tmp_path / "secrets.key").write_text(keys)
    with pytest.raises(SecretsError, match="evenflow secrets key"):
        Vault(tmp_path / "secrets.key").seal("variable", "v", "1")


def test_a_seal_is_good_in_its_place_alone(tmp_path: Path) -> None:
    """R-SE1: whoever writes the database moves no secret to a name, a kind or a run of his own, and changes none."""
    vault = Vault(tmp_path / "secrets.key")
    seal = vault.seal("connection", "prod", "open-sesame")
    assert vault.open("connection", "prod", seal) == "open-sesame"
    assert seal.startswith(b"ef1:")
    assert vault.seal("connection", "prod", "open-sesame") != seal
    moved = [("connection", "mine", seal), ("variable", "prod", seal)]
    changed = [("connection", "prod", bad) for bad in (seal[:-1], seal[:-1] + b"x", b"", b"ef1:", b"ef2:" + seal[4:])]
    for kind, name, bad in moved + changed:
        with pytest.raises(SecretsError, match="or under another name") as refused:
            vault.open(kind, name, bad)
        assert "open-sesame" not in str(refused.value)
