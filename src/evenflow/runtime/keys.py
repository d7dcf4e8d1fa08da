"""The keys of this installation, for those who can reach its database: commands as well as APIs seal and sign with them."""

from __future__ import annotations

from evenflow.api.vault import Vault
from evenflow.runtime.service_settings import SECRETS_FILE
from evenflow.runtime.settings import Settings


def vault_of(settings: Settings) -> Vault:
    """Those of a setting, or of the file in the home."""
    keys = settings.secret_keys.get_secret_value() if settings.secret_keys else ""
    return Vault(settings.home / SECRETS_FILE, keys)
