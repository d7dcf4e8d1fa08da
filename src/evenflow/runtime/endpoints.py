"""Checks where Evenflow sends what it tells others, and what it shows there."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import SecretStr

from evenflow.api.tracing.settings import read_headers

# What the address of each looks like, and the setting of what is shown there.
_EXAMPLES = {
    "openlineage_url": ("https://host/api/v1/lineage", "openlineage_key"),
    "traces_url": ("http://host:4318/v1/traces", "traces_headers"),
}


def check_endpoint(setting: str, value: str | SecretStr | None) -> None:
    """Checks the value of a setting about an endpoint: its address, or the headers that it wants. Raises :class:`ValueError`, whose
    text does not repeat the value: an address may have a password in it.
    """
    match value:
        case SecretStr():
            read_headers(value.get_secret_value())
        case str() if value:
            example, shown = _EXAMPLES[setting]
            parts = urlsplit(value)
            if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or not parts.path.strip("/"):
                raise ValueError(f"write it as {example}, and what is to be shown there as {shown}")
