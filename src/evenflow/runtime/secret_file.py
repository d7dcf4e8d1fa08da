"""Secrets in files."""

from __future__ import annotations

import os
from pathlib import Path


def write_secret(file: Path, text: str) -> None:
    """Write ``text`` and a newline, readable by the owner alone from the first moment, and all at once."""
    unfinished = file.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(text + "\n")
    unfinished.rename(file)
