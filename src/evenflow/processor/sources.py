"""Sources of a bundle's files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from evenflow.errors import SettingsError


class Source(Protocol):
    """``refresh_s`` is how often to fetch; None for a source that notifies by itself."""

    name: str
    refresh_s: float | None

    @property
    def folder(self) -> Path:
        """Returns the folder of the files; it may be a link that is swapped."""
        ...

    def check(self) -> None:
        """Raises :class:`SettingsError` for a source that can never work."""
        ...

    async def refresh(self) -> None:
        """Fetches changes; an error shows in the state, and the files stay unchanged."""
        ...

    def revision(self, root: Path) -> str | None:
        """Returns the commit of files that were found under ``root``, which is ``folder`` with links resolved."""
        ...

    def state(self) -> dict[str, Any]:
        """Returns the state for people, without secrets."""
        ...


class LocalFolder:
    """A folder of this host, in its present state."""

    refresh_s: float | None = None

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self._folder = name, folder

    @property
    def folder(self) -> Path:
        return self._folder

    def check(self) -> None:
        if not self._folder.is_dir():
            raise SettingsError(
                f"The DAG folder {self._folder} of bundle {self.name!r} does not exist. Make it, or name another (--dags)."
            )

    async def refresh(self) -> None:
        """Does nothing, because a local folder needs no fetch."""

    def revision(self, root: Path) -> str | None:
        return None

    def state(self) -> dict[str, Any]:
        return {"kind": "local", "location": str(self._folder)}
