"""Vault, its KV store of version 2: ``<mount>/<path>/connections/<id>`` and ``variables/<key>``, with the field ``value``."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any

from evenflow.api import limits
from evenflow.api.secret_stores.store import FOLDERS, StoredSecret, secret_of
from evenflow.core.object_names import SealedKind
from evenflow.errors import SecretStoreError, SettingsError


class VaultSecrets:
    """The address and the login come from the environment, as in Vault's own programs: ``VAULT_ADDR``, ``VAULT_NAMESPACE``,
    ``VAULT_CACERT``, and ``VAULT_TOKEN`` or ``VAULT_ROLE_ID`` with ``VAULT_SECRET_ID``.
    """

    folds = False

    def __init__(self, mount: str, path: str, environ: Mapping[str, str] = os.environ) -> None:
        try:
            import hvac
        except ImportError:
            raise SettingsError("Secrets from Vault need hvac. Type: pip install 'evenflow[vault]'") from None
        address = environ.get("VAULT_ADDR", "")
        if not address:
            raise SettingsError(
                "Secrets are to come from Vault: set VAULT_ADDR to its address, such as https://vault.internal:8200."
            )
        self._role = (environ.get("VAULT_ROLE_ID", ""), environ.get("VAULT_SECRET_ID", ""))
        token = environ.get("VAULT_TOKEN", "")
        if not token and not all(self._role):
            raise SettingsError("Secrets are to come from Vault: set VAULT_TOKEN, or VAULT_ROLE_ID and VAULT_SECRET_ID.")
        self.name = f"Vault at {address}"
        self._mount, self._path = mount, path
        self._hvac: Any = hvac
        self._client: Any = hvac.Client(
            url=address,
            token=token or None,
            namespace=environ.get("VAULT_NAMESPACE") or None,
            verify=environ.get("VAULT_CACERT") or True,
            timeout=limits.SECRET_STORE,
        )
        self._login = threading.Lock()

    def read(self, kind: SealedKind, name: str) -> StoredSecret | None:
        place = f"{self._path}/{FOLDERS[kind]}/{name}".lstrip("/")
        errors = self._hvac.exceptions
        try:
            fields = self._fields(place)
        except errors.InvalidPath:
            return None
        except errors.Forbidden:
            raise SecretStoreError(
                f"{self.name} refuses to read {self._mount}/data/{place}: permission denied. Let the policy of the API's token "
                "or role read it; a token that is over is renewed or set anew (VAULT_TOKEN)."
            ) from None
        except errors.VaultDown:
            raise SecretStoreError(f"{self.name} is sealed. Unseal it: vault operator unseal") from None
        if "value" not in fields:
            raise SecretStoreError(f"{self.name} has {self._mount}/{place} without the field 'value', which is the secret.")
        return secret_of(self.name, name, fields["value"], fields.get("dags"))

    def _fields(self, place: str) -> Mapping[str, Any]:
        if not all(self._role):
            return self._read(place)
        if not self._client.token:
            self._log_in(None)
        used = self._client.token
        try:
            return self._read(place)
        except self._hvac.exceptions.Forbidden:  # the token may have expired
            self._log_in(used)
            return self._read(place)

    def _log_in(self, used: str | None) -> None:
        """Logs in, unless another thread has done so meanwhile."""
        with self._login:
            if self._client.token == used:
                role, secret = self._role
                errors = self._hvac.exceptions
                try:
                    self._client.auth.approle.login(role_id=role, secret_id=secret)
                except (errors.InvalidRequest, errors.Unauthorized, errors.Forbidden, errors.InvalidPath):
                    raise SecretStoreError(
                        f"{self.name} refuses the login of VAULT_ROLE_ID with VAULT_SECRET_ID. Set a new secret id of the role: "
                        "vault write -f auth/approle/role/ROLE/secret-id"
                    ) from None

    def _read(self, place: str) -> Mapping[str, Any]:
        answer = self._client.secrets.kv.v2.read_secret_version(path=place, mount_point=self._mount, raise_on_deleted_version=True)
        found: Mapping[str, Any] = answer["data"]["data"]
        return found
