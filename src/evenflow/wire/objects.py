"""Object storage for values that are too large for the database: any file system of fsspec, by default a local folder.

Objects have plain names, never paths or URLs, below the one configured URL: so a name from the database can lead nowhere else. The
calls block; run them in a thread.
"""

from __future__ import annotations

import os
import secrets
from typing import Any
from urllib.parse import urlsplit

from evenflow.errors import SettingsError

FOLDER = ".parquet"  # the ending of a folder's name: it has the files of a DataFrame
_EXTRAS = {"s3": "evenflow[s3]", "s3a": "evenflow[s3]", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs"}  # to install


def open_storage(url: str, **options: Any) -> tuple[Any, str]:
    """Returns the file system of ``url``, and the path in it. Raises :class:`SettingsError` if it is not available here."""
    import fsspec

    try:
        system, root = fsspec.core.url_to_fs(url, **options)
    except (ImportError, ValueError) as error:
        package = _EXTRAS.get(urlsplit(url).scheme)
        cure = f" Type: pip install '{package}'" if package and isinstance(error, ImportError) else ""
        raise SettingsError(f"{url} cannot be used as storage here: {str(error).rstrip('.')}.{cure}") from None
    return system, str(root).rstrip("/")


class ObjectStorage:
    def __init__(self, url: str) -> None:
        self.url = url
        self._opened: tuple[Any, str] | None = None

    def write(self, name: str, data: bytes) -> None:
        """Writes an object. Raises :class:`OSError`, or whatever the file system raises."""
        system, root = self._open()
        if "file" in system.protocol and not os.path.isdir(root):
            os.makedirs(root, mode=0o700, exist_ok=True)  # values are only for users who run tasks
        system.pipe_file(f"{root}/{name}", data)

    def read(self, name: str) -> bytes:
        system, root = self._open()
        data: bytes = system.cat_file(f"{root}/{name}")
        return data

    def list_all(self) -> list[str]:
        """Returns the names of all objects."""
        system, root = self._open()
        system.invalidate_cache()
        try:
            return [str(path).rpartition("/")[2] for path in system.ls(root, detail=False)]
        except FileNotFoundError:
            return []

    def begin_folder(self, name: str) -> None:
        """Makes the folder, if the file system has folders. If the writer finds it, both processes see the same place."""
        system, root = self._open()
        if "file" in system.protocol:
            os.makedirs(root, mode=0o700, exist_ok=True)
            os.mkdir(f"{root}/{name}")

    def delete(self, name: str) -> None:
        """Deletes an object. One that is gone already counts as deleted."""
        system, root = self._open()
        try:
            if name.endswith(FOLDER):
                system.rm(f"{root}/{name}", recursive=True)
            else:
                system.rm_file(f"{root}/{name}")
        except FileNotFoundError:
            return

    def _open(self) -> tuple[Any, str]:
        if self._opened is None:
            self._opened = open_storage(self.url)
        return self._opened


def new_name(epoch: int, ending: str = ".json") -> str:
    """Returns a name that is never used again, so that an object can be deleted or replaced without a check for other users."""
    return f"{epoch}-{secrets.token_hex(8)}{ending}"
