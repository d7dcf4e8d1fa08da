"""Object storage for logs. The calls block, and raise whatever a file system raises."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from evenflow.api.logs.layout import LogObject, Piece, parse
from evenflow.wire.objects import open_storage

_CONNECT_S, _READ_S = 5, 10  # a call that no caller waits for ends soon after
_OPTIONS: dict[str, dict[str, Any]] = {
    "s3": {"config_kwargs": {"connect_timeout": _CONNECT_S, "read_timeout": _READ_S, "retries": {"total_max_attempts": 1}}}
}


class Bucket:
    """The folders of logs below ``url``."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._opened: tuple[Any, str] | None = None

    def open(self) -> tuple[Any, str]:
        """Raises :class:`SettingsError`."""
        if self._opened is None:
            options = _OPTIONS.get(self.url.partition("://")[0], {})
            self._opened = open_storage(self.url, use_listings_cache=False, **options)
        return self._opened

    def check(self) -> None:
        """Checks the bucket: writes, reads, lists and deletes an object of its own."""
        folder, name, said = PurePosixPath(".check"), f"{secrets.token_hex(8)}.txt", b"Evenflow can write here.\n"
        self.write(folder, name, said)
        system, root = self.open()
        path = f"{root}/{folder}/{name}"
        found = system.cat_file(path)
        listed = [str(item).rpartition("/")[2] for item in system.ls(f"{root}/{folder}", detail=False)]
        system.rm_file(path)
        if found != said or name not in listed:
            raise OSError("what was written could not be read again")

    def list(self, folder: PurePosixPath) -> list[LogObject]:
        system, root = self.open()
        try:
            found = system.ls(f"{root}/{folder}", detail=True)
        except FileNotFoundError as error:
            if error.__cause__ is not None:  # the provider's error: the bucket is missing, not the folder
                raise OSError(str(error)) from error
            return []
        parsed = (parse(str(item["name"]).rpartition("/")[2], int(item["size"] or 0)) for item in found if item["type"] == "file")
        return [item for item in parsed if item is not None]

    def write(self, folder: PurePosixPath, name: str, data: bytes) -> None:
        system, root = self.open()
        if "file" in system.protocol:
            system.makedirs(f"{root}/{folder}", exist_ok=True)
        system.pipe_file(f"{root}/{folder}/{name}", data)

    def read(self, folder: PurePosixPath, pieces: Sequence[Piece]) -> bytes:
        """Raises :class:`FileNotFoundError` when an object is gone."""
        system, root = self.open()
        wanted = [piece for piece in pieces if piece.object is not None and piece.size]
        paths = [f"{root}/{folder}/{piece.object.name}" for piece in wanted if piece.object is not None]
        starts, ends = [piece.skip for piece in wanted], [piece.skip + piece.size for piece in wanted]
        read = iter(system.cat_ranges(paths, starts, ends, on_error="raise"))
        return b"".join(piece.said if piece.object is None else next(read) if piece.size else b"" for piece in pieces)

    def delete(self, folder: PurePosixPath, names: Sequence[str]) -> None:
        system, root = self.open()
        for name in names:
            try:
                system.rm_file(f"{root}/{folder}/{name}")
            except FileNotFoundError:
                continue

    def delete_all(self, folder: PurePosixPath) -> None:
        """Deletes until the folder is empty, so that objects written meanwhile go, too."""
        system, root = self.open()
        for _ in range(3):
            try:
                system.rm(f"{root}/{folder}", recursive=True)
            except FileNotFoundError:
                return
