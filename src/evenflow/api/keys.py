"""Checks that this API server has the keys of the others: before it serves, it opens what the first one has sealed."""

from __future__ import annotations

from evenflow.api.vault import Vault
from evenflow.errors import SecretsError
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving import sealed, tokens
from evenflow.store.serving.sealed import CANARY, Canary


async def check_keys(conn: AsyncConn, vault: Vault, *, host: str) -> None:
    """Raises :class:`SecretsError`, which says what to copy, when the keys are not those in use.

    Keys that nothing depends on, because nothing is sealed and no other API server runs, are replaced by those of this one.
    """
    canary, fit = await sealed.read_canary(conn), await tokens.keys_fit(conn, vault)
    if not fit or (canary is not None and key_problem(canary, vault) is not None):
        await sealed.delete_unused_keys(conn, fit=fit)
        canary = await sealed.read_canary(conn)
    if canary is None:
        await sealed.make_canary(conn, vault.seal("canary", CANARY, CANARY), host=host)
        canary = await sealed.read_canary(conn)  # another API server may have been first
    assert canary is not None
    problem = key_problem(canary, vault)
    if problem is None and not await tokens.keys_fit(conn, vault):
        problem = _problem(canary, vault)
    if problem is not None:
        raise SecretsError(problem)


def key_problem(canary: Canary, vault: Vault) -> str | None:
    """Returns why the keys of ``vault`` are not those in use, and what to do; None when they are."""
    try:
        vault.open("canary", CANARY, canary.sealed)
    except SecretsError:
        return _problem(canary, vault)
    return None


def _problem(canary: Canary, vault: Vault) -> str:
    return (
        f"The keys that seal connections and variables ({vault.source}) are not those in use, which were made on host "
        f"{canary.host!r}. Copy secrets.key from the EVENFLOW_HOME of an API there to {vault.file}, or set "
        "EVENFLOW_SECRET_KEYS alike for all APIs, and start again. If those keys are lost for good, empty the tables "
        "sealed_value and token_key while no API runs (evenflow db psql): what they hold can be read by nobody"
    )
