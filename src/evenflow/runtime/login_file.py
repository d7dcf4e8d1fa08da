"""The file of `evenflow login`: the API to which the command line is logged in, and its token, readable only by its owner. It is in
the home that the environment names, else in the user's own.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from evenflow.errors import SettingsError
from evenflow.forking.sandbox import OURS as PREFIX
from evenflow.runtime.home import LOGIN, write_secret


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLogin:
    api_url: str
    token: str
    name: str
    expires_at: str  # ISO 8601

    @property
    def is_over(self) -> bool:
        return datetime.fromisoformat(self.expires_at) <= datetime.now(UTC)


def read_login() -> KeptLogin | None:
    """Returns the login, or None without one. Raises :class:`SettingsError` when the file has another form."""
    file = _file()
    try:
        return KeptLogin(**json.loads(file.read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        raise SettingsError(f"{file} cannot be read. Delete it, and type: evenflow login --server URL") from None


def keep_login(login: KeptLogin) -> Path:
    """Stores a login, which replaces the last one."""
    file = _file()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_secret(file, json.dumps(asdict(login)))
    return file


def forget_login() -> None:
    _file().unlink(missing_ok=True)


def _file() -> Path:
    """Returns the path. It is never in a project, whose files others may have written: commands would send them secrets."""
    home = os.environ.get(f"{PREFIX}HOME")
    return (Path(home) if home else Path.home() / ".evenflow") / LOGIN
