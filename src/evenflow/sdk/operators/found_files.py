"""Whether a file is there that a pattern names, as the file sensor and its trigger look for it."""

from __future__ import annotations

import os
from glob import iglob


def find_file(pattern: str, recursive: bool) -> str | None:
    """The first path that matches and is a file, or a directory with a file somewhere in it. ``**`` matches folders with
    ``recursive``.
    """
    return next((path for path in iglob(pattern, recursive=recursive) if _has_file(path)), None)


def _has_file(path: str) -> bool:
    return os.path.isfile(path) or any(files for _, _, files in os.walk(path))
