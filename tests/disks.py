"""Disks that are really full: small file systems in memory. Only root may mount them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SIZE = 4 * 2**20  # bytes

needs_mount = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a file system")


class SmallDisk:
    """``folder`` is on it. :meth:`fill` takes what is free, :meth:`clean_up` gives it back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        with self._ballast.open("ab") as file:
            file.write(b"\0" * shutil.disk_usage(self.folder).free)

    def clean_up(self) -> None:
        self._ballast.unlink()


@contextmanager
def small_disk(folder: Path) -> Iterator[SmallDisk]:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder], check=True)
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
