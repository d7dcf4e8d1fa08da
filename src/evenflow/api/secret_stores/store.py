"""The interface of a secret store, and the secret that is read from one."""

from __future__ import annotations

import json
import os
from typing import NamedTuple, Protocol

from evenflow.core.limits import MAX_SECRET_BYTES
from evenflow.core.object_names import SealedKind
from evenflow.errors import SecretStoreError

FOLDERS: dict[SealedKind, str] = {"connection": "connections", "variable": "variables"}


class StoredSecret(NamedTuple):
    text: str
    dags: tuple[str, ...] = ()  # patterns of the DAGs that may use it; none: all


class SecretStore(Protocol):
    """``name`` is the store's name in messages. Calls block; several threads make them at once. ``folds``: names that are equal as
    :func:`folded` are one secret there.
    """

    name: str
    folds: bool

    def read(self, kind: SealedKind, name: str) -> StoredSecret | None:
        """Returns None if the store has no such secret. Raises :class:`SecretStoreError`, or whatever its library raises."""


def parse_secret(store: str, name: str, text: str) -> StoredSecret:
    """Returns the text as a secret; of a JSON object with ``value``, that value, for the DAGs of its ``dags``. Raises
    :class:`SecretStoreError`.
    """
    try:
        fields = json.loads(text) if text.lstrip().startswith("{") else None
    except ValueError:
        fields = None
    if isinstance(fields, dict) and "value" in fields and fields.keys() <= {"value", "dags"}:
        return secret_of(store, name, fields["value"], fields.get("dags"))
    return secret_of(store, name, text, None)


def secret_of(store: str, name: str, value: object, dags: object) -> StoredSecret:
    """Raises :class:`SecretStoreError` for what cannot be a secret; the error does not quote the value."""
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text.encode()) > MAX_SECRET_BYTES:
        raise SecretStoreError(f"What {store} has as {name!r} is above the limit of {MAX_SECRET_BYTES:,} bytes.")
    patterns = dags.split(",") if isinstance(dags, str) else [] if dags is None else dags
    if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
        raise SecretStoreError(f'The `dags` of {name!r} in {store} are no patterns of DAG ids, such as "sales_*,finance".')
    if not (kept := tuple(pattern.strip() for pattern in patterns if pattern.strip())) and dags is not None:
        raise SecretStoreError(f"The `dags` of {name!r} in {store} name no DAG. Take the field away to let all use it.")
    return StoredSecret(text, kept)


def folded(name: str) -> str:
    """Returns the name as a part of that of an environment's variable."""
    return "".join(char if char.isascii() and char.isalnum() else "_" for char in name.upper())


class EnvironmentSecrets:
    """Variables of the API's own environment: ``<prefix>CONN_<ID>`` and ``<prefix>VAR_<KEY>``."""

    folds = True

    def __init__(self, prefix: str) -> None:
        self.name, self._prefix = f"the API's environment ({prefix}*)", prefix

    def read(self, kind: SealedKind, name: str) -> StoredSecret | None:
        text = os.environ.get(f"{self._prefix}{'CONN' if kind == 'connection' else 'VAR'}_{folded(name)}")
        return None if text is None else parse_secret(self.name, name, text)
