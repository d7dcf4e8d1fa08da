"""The home of an Evenflow: a folder for its owner alone."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

PRIVATE = ("logs", "code", "trigger-code", "bundles", "xcom")  # of what tasks do and are; the database's folders say their own


def prepare_home(home: Path) -> None:
    """Make the folder, and those in it that are nobody else's business; version control shall not see what is in it."""
    home.parent.mkdir(parents=True, exist_ok=True)
    # Root's database runs as another account, and must get in.
    home.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, exist_ok=True)
    for name in PRIVATE:
        (home / name).mkdir(mode=0o700, exist_ok=True)
    ignore = home / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")


def open_folders(home: Path) -> Iterator[Path]:
    """Those in a home that others may look into: it was made before, or by somebody else, and is left as it is."""
    for folder in (home / name for name in PRIVATE):
        if folder.is_dir() and folder.stat().st_mode & (stat.S_IROTH | stat.S_IXOTH):
            yield folder
