"""Stores of secrets on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clouds import cloud, shared_cloud
from tests.secret_stores.vault_server import VaultServer, running_vault

__all__ = ["cloud", "shared_cloud"]  # fixtures


@pytest.fixture
def vault(monkeypatch: pytest.MonkeyPatch) -> Iterator[VaultServer]:
    with running_vault() as (server, url):
        monkeypatch.setenv("VAULT_ADDR", url)
        monkeypatch.setenv("VAULT_TOKEN", "good-token")
        yield server
