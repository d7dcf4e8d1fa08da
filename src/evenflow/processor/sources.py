"""Where the files of a bundle come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from evenflow.errors import SettingsError


class Source(Protocol):
    """``refresh_s`` is how often to ask for news; None for what tells by itself."""

    name: str
    refresh_s: float | None

    @property
    def folder(self) -> Path:
        """Where the files are; may be a link that is swapped."""
        ...

    def check(self) -> None:
        """Raises :class:`SettingsError` for what can never work."""
        ...

    async def refresh(self) -> None:
        """Fetches what is new; what goes wrong shows in the state, and the files stay as they were."""
        ...

    def revision(self, root: Path) -> str | None:
        """The commit of files that were found under ``root``, which is ``folder`` with links resolved."""
        ...

    def state(self) -> dict[str, Any]:
        """For people: no secret in it."""
        ...


class LocalFolder:
    """A folder of this host, as it is at any moment."""

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
        """Nothing has to be fetched."""

    def revision(self, root: Path) -> str | None:
        return None

    def state(self) -> dict[str, Any]:
        return {"kind": "local", "location": str(self._folder)}
