"""Secret settings from files: ``EVENFLOW_TOKEN_FILE`` names a file whose text is ``EVENFLOW_TOKEN``, as containers and systemd pass
secrets. The content of a file shows in no list of processes and in no description of a container.
"""

from __future__ import annotations

import os
from typing import Any, get_args

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from evenflow.errors import SettingsError

SUFFIX = "_FILE"
LONGEST = 64 * 2**10  # bytes: a token has 500, and twenty keys of connections 1,000; a larger file is the wrong one


class SecretFiles(PydanticBaseSettingsSource):
    """Raises :class:`SettingsError` when a file cannot be read, or when the setting is given twice."""

    def __call__(self) -> dict[str, Any]:
        prefix = str(self.config.get("env_prefix", ""))
        named = {name: os.environ.get(prefix + name.upper() + SUFFIX, "") for name in secret_fields(self.settings_cls)}
        return {name: _read(prefix + name.upper(), path) for name, path in named.items() if path}

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Not used: all values come from one call."""
        return None, field_name, False


def secret_fields(settings: type[BaseSettings]) -> list[str]:
    """Returns the names of the fields with secret texts."""
    return [name for name, field in settings.model_fields.items() if _is_secret(field.annotation)]


def _is_secret(annotation: Any) -> bool:
    return annotation is SecretStr or SecretStr in get_args(annotation)


def _read(variable: str, path: str) -> str:
    if variable in os.environ:
        raise SettingsError(f"{variable} and {variable}{SUFFIX} are both set. Unset one of them.")
    try:
        with open(path, encoding="utf-8") as stream:
            text = stream.read(LONGEST + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise SettingsError(f"{variable}{SUFFIX}: {path} cannot be read: {reason}.") from None
    if len(text) > LONGEST:
        raise SettingsError(f"{variable}{SUFFIX}: {path} has more than {LONGEST // 2**10} KiB: name the file of a secret.")
    if not text.strip():
        raise SettingsError(f"{variable}{SUFFIX}: {path} is empty.")
    return text.strip()
