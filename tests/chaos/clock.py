"""Clocks that can be moved, for PostgreSQL and services: a small preloaded library, where there is a compiler."""

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
        """The wall clock, by so much from the right time."""
        self._write(seconds, 0)

    def suspend(self, seconds: int) -> None:
        """As a host that slept for so long: all clocks go on but the monotonic one."""
        self._write(seconds, seconds)

    def _write(self, *moved: int) -> None:
        with open(self._file, "r+b" if self._file.exists() else "wb", buffering=0) as file:
            file.write(struct.pack("2l", *moved))


def compile_clock(folder: Path) -> Path | None:
    """The library; None when this host has no C compiler."""
    return compile_library(SOURCE, folder)


def compile_library(source: Path, folder: Path) -> Path | None:
    """What is preloaded into processes; None when this host has no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    library = folder / f"{source.stem}.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source)], check=True)
    library.chmod(0o755)
    return library
