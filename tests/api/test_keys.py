"""Two APIs with different keys: each notices it before it serves anybody."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evenflow.api.service import ApiService
from evenflow.api.vault import Vault, new_key
from evenflow.errors import SecretsError
from tests.api.world import World
from tests.apis import make_api

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
    sealed = Vault(tmp_path / "second" / "secrets.key").seal("1")
    db.execute("insert into sealed_value (kind, name, sealed, changed_by) values ('variable', 'v', %s, 'ada')", [sealed])
    with pytest.raises(SecretsError, match="If those keys are lost for good"):
        await start(Vault(tmp_path / "first" / "secrets.key"))
    db.execute("delete from sealed_value")
    await start(Vault(tmp_path / "first" / "secrets.key"))
