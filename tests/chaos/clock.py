"""A wall clock that can be moved, for PostgreSQL and API servers: a small preloaded library, where there is a compiler."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")


class Clock:
    """The clock of the processes that have its ``environment``."""

    def __init__(self, library: Path, file: Path) -> None:
        self._file = file
        self.environment = {"LD_PRELOAD": str(library), "CHAOS_CLOCK": str(file)}
        self.move(0)
        file.chmod(0o644)

    def move(self, seconds: int) -> None:
        """By so much from the right time."""
        with open(self._file, "r+b" if self._file.exists() else "wb", buffering=0) as file:
            file.write(struct.pack("l", seconds))


def compile_clock(folder: Path) -> Path | None:
    """The library; None when this host has no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    library = folder / "clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE)], check=True)
    library.chmod(0o755)
    return library
