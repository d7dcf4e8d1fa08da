"""In which order stores are asked, how often, and what one that is away costs the others."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from evenflow.api import limits
from evenflow.api.secret_stores.hashicorp import VaultSecrets
from evenflow.api.secret_stores.lookup import FoundSecret, SecretStores, open_stores
from evenflow.api.secret_stores.store import EnvironmentSecrets, StoredSecret
from evenflow.errors import SecretStoreError
from tests.secret_stores.vault_server import VaultServer
from tests.waiting import until


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_stores_are_asked_in_their_order(vault: VaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_VAR_X", "of the environment")
    vault.secrets["evenflow/variables/x"] = {"value": "of Vault"}
    stores = open_stores("vault, environment, database")
    assert (await stores.before_database("variable", "x")).secret.text == "of Vault"  # type: ignore[union-attr]
    assert await stores.after_database("variable", "x") is None
    stores = open_stores("environment,database,vault")
    assert (await stores.before_database("variable", "x")).secret.text == "of the environment"  # type: ignore[union-attr]
    found = await stores.after_database("variable", "x")
    assert found == FoundSecret(stores.names[1], StoredSecret("of Vault"))


async def test_answers_are_kept_for_a_while_and_so_is_that_there_is_none(vault: VaultServer) -> None:
    clock = Clock()
    stores = SecretStores([VaultSecrets("secret", "evenflow")], clock=clock)
    vault.secrets["evenflow/variables/x"] = {"value": "1"}
    for _ in range(3):
        await asyncio.gather(*(stores.before_database("variable", name) for name in ("x", "x", "none")))
    assert len(vault.requests) == 2
    vault.secrets["evenflow/variables/x"] = {"value": "2"}
    vault.secrets["evenflow/variables/none"] = {"value": "3"}
    clock.now = limits.SECRET_MISSED + 1
    found = [await stores.before_database("variable", name) for name in ("x", "none")]
    assert [each and each.secret.text for each in found] == ["1", "3"]
    clock.now = limits.SECRET_KEPT + 1
    assert (await stores.before_database("variable", "x")).secret.text == "2"  # type: ignore[union-attr]


async def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECRETS_KNOWN", 5)
    stores = SecretStores([EnvironmentSecrets("SECRET_")])
    for number in range(20):
        await stores.before_database("variable", f"n{number}")
    assert len(stores._known) == 5


async def test_a_store_that_stands_still_holds_nobody_else(vault: VaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECRET_WAIT", 0.2)
    monkeypatch.setenv("SECRET_VAR_X", "1")
    stores = SecretStores([VaultSecrets("secret", "evenflow")], [EnvironmentSecrets("SECRET_")])
    vault.still.clear()
    asking = [asyncio.create_task(stores.before_database("variable", f"n{number}")) for number in range(50)]
    await until(lambda: vault.requests)
    assert (await stores.after_database("variable", "x")).secret.text == "1"  # type: ignore[union-attr]
    begun = time.monotonic()
    answers = await asyncio.gather(*asking, return_exceptions=True)
    assert time.monotonic() - begun < 5
    assert all(isinstance(answer, SecretStoreError) for answer in answers)
    assert "cannot be asked for the variable 'n0': it did not answer within 0.2 s. See that it runs" in str(answers[0])
    assert len(vault.requests) <= limits.SECRET_CALLS
    assert threading.active_count() < 40


async def test_one_who_goes_away_takes_the_answer_from_nobody(vault: VaultServer) -> None:
    vault.secrets["evenflow/variables/x"] = {"value": "1"}
    vault.still.clear()
    stores = SecretStores([VaultSecrets("secret", "evenflow")])
    first, second = (asyncio.create_task(stores.before_database("variable", "x")) for _ in range(2))
    await until(lambda: vault.requests)
    first.cancel()
    vault.still.set()
    assert (await second).secret.text == "1"  # type: ignore[union-attr]
    assert len(vault.requests) == 1


@pytest.mark.parametrize("name", ["../connections/x", "..", ".", "a/b", "a\\b", "", "x" * 251, "a\nb"])
async def test_a_name_leads_nowhere_else(vault: VaultServer, name: str) -> None:
    """R-SE4: names come from tasks, and are a part of the path that a store is asked for."""
    vault.secrets["evenflow"] = vault.secrets["evenflow/connections/x"] = {"value": "1"}
    stores = open_stores("vault")
    assert await stores.before_database("variable", name) is None
    assert vault.requests == []
