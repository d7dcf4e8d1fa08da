"""Finds a connection or a variable in the database and in the secret stores, for tries and for files that are being loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from evenflow.api.execution.endpoint import Call
from evenflow.api.refusals import Refused
from evenflow.api.secret_stores.lookup import SecretStores
from evenflow.api.secret_stores.store import folded
from evenflow.api.trail import AskedSecrets
from evenflow.api.vault import Vault
from evenflow.core.object_names import SealedKind
from evenflow.store.db.connect import AsyncPool, Row
from evenflow.store.serving import sealed
from evenflow.wire.messages import AskValue, GivenValue

SecretRule = Callable[
    [str, Sequence[str], str | None], None
]  # name, patterns of DAGs, store; raises Refused if the asker may not use it


class SecretFinder:
    """All that find share one, because events count its questions."""

    def __init__(self, pool: AsyncPool, vault: Vault, stores: SecretStores) -> None:
        self._pool, self._vault, self._stores = pool, vault, stores
        self._asked = AskedSecrets()

    @property
    def stores(self) -> list[str]:
        """The names of the stores that are asked beside the database."""
        return self._stores.names

    async def find(
        self, kind: SealedKind, name: str, row: Row | None, rule: SecretRule, *, asker: str, detail: dict[str, Any]
    ) -> str | None:
        """Returns the text of this secret; ``row`` is what the database has under its name. ``asker`` and ``detail`` are for the
        events, which know of it before the answer.

        Holds no connection to the database while it asks a store. The patterns in the database hold for all stores: where several
        names are one secret, those of each of them.
        """
        if row is not None:
            rule(name, row["dags"], None)
        elsewhere = await self._stores.before_database(kind, name)
        if elsewhere is None and row is None:
            elsewhere = await self._stores.after_database(kind, name)
        if elsewhere is not None:
            rule(name, elsewhere.secret.dags, elsewhere.store)
        async with self._pool.connection() as conn:
            if elsewhere is not None and elsewhere.folds:
                for other, patterns in await sealed.list_rules(conn, kind):
                    if folded(other) == folded(name):
                        rule(other, patterns, None)
            if elsewhere is None and row is None:
                return None
            await self._asked.tell(conn, kind, name, asker, detail)
        if elsewhere is not None:
            return elsewhere.secret.text
        assert row is not None
        return self._vault.open(kind, name, row["sealed"])


class LoadedValueRoutes:
    """Gives processes that load a DAG file what all DAGs may use: which DAGs the file has is not known yet."""

    def __init__(self, pool: AsyncPool, finder: SecretFinder) -> None:
        self._pool, self._finder = pool, finder

    async def give(self, call: Call) -> GivenValue:
        message: AskValue = call.message
        service = call.of_service
        async with self._pool.connection() as conn:
            row = await sealed.read_value(conn, message.kind, message.name)
        detail = {"last_service": f"{service.kind} {service.service_id}"}
        text = await self._finder.find(
            message.kind, message.name, row, partial(_for_all, message.kind), asker=f"file {message.file}", detail=detail
        )
        changed_at = None if row is None else row["changed_at"]
        if text is not None:
            return GivenValue(text=text, changed_at=changed_at)
        async with self._pool.connection() as conn:
            similar = await sealed.list_similar(conn, message.kind, message.name)
        return GivenValue(similar=[name for name, patterns in similar if not patterns], changed_at=changed_at)


def _for_all(kind: SealedKind, name: str, patterns: Sequence[str], store: str | None) -> None:
    if not patterns:
        return
    cure = f"let all DAGs use it: evenflow {kind}s allow {name}" if store is None else f"leave out its `dags` in {store}"
    raise Refused(
        403,
        "forbidden",
        f"The {kind} {name!r} is for certain DAGs only, and it is not known which DAGs a file has while it is loaded. Ask for it "
        f"in a task or by a template, or {cure}",
    )
