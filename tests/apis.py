"""API servers in the process of a test, on a real database; what they write is in a folder of the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from evenflow.api import limits
from evenflow.api.service import ApiService
from evenflow.api.tracing.settings import TraceSettings
from evenflow.api.vault import Vault
from evenflow.core.people.identities import IdentityProvider
from evenflow.wire.objects import ObjectStorage
from evenflow.wire.tls import Tls
from tests.tokens import opened_by


def make_api(
    database_url: str,
    folder: Path,
    *,
    port: int = 0,
    name: str = "api",
    vault: Vault | None = None,
    operator_token: str | None = None,
    host: str = "127.0.0.1",
    tls: Tls | None = None,
    logs: str = "",
    secret_stores: str = "",
    provider: IdentityProvider | None = None,
    requests_each: float = limits.REQUESTS_EACH,
    tracing: TraceSettings | None = None,
) -> ApiService:
    """One that is not started. Those of one ``folder`` share keys, logs and large values; port 0 is a free one, ``logs`` a URL."""
    vault = vault or Vault(folder / "secrets.key")
    opened_by(vault, database_url)
    return ApiService(
        database_url,
        host=host,
        tls=tls,
        port=port,
        logs=logs or (folder / "logs").as_uri(),
        secret_stores=secret_stores,
        name=name,
        vault=vault,
        storage=ObjectStorage(str(folder / "xcom")),
        operator_token=operator_token,
        provider=provider,
        requests_each=requests_each,
        tracing=tracing,
    )


@asynccontextmanager
async def running_api(
    database_url: str,
    folder: Path,
    *,
    port: int = 0,
    operator_token: str | None = None,
    tracing: TraceSettings | None = None,
) -> AsyncIterator[ApiService]:
    api = make_api(database_url, folder, port=port, operator_token=operator_token, tracing=tracing)
    await api.start()
    try:
        yield api
    finally:
        await api.stop()
