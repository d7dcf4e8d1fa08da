"""Which files are trusted: a file that decides where tokens go, or a folder that holds them, must belong to this user alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from evenflow.errors import SettingsError

VARIABLE = "EVENFLOW_TRUST"  # folders, as in PATH, whose evenflow.toml and home are trusted, regardless of their owner


def is_trusted(path: Path) -> bool:
    """Returns whether a path is trusted regardless of its owner and its writers."""
    return any(path.is_relative_to(folder) for folder in os.environ.get(VARIABLE, "").split(os.pathsep) if folder)


def check_owner(path: Path) -> None:
    """Raises :class:`SettingsError` when the path exists and another user than root owns it, or everybody may write it."""
    if is_trusted(path):
        return
    try:
        link, found = path.lstat(), path.stat()
    except OSError:
        return
    owners = {link.st_uid, found.st_uid} - {0, os.geteuid()}
    if owners:
        raise SettingsError(
            f"{path} belongs to another user (uid {min(owners)}), who could have your tokens sent elsewhere. Make it your own "
            f"(chown), go to another folder, or trust this one: export {VARIABLE}={path.parent}"
        )
    if found.st_mode & stat.S_IWOTH:
        raise SettingsError(f"Everybody may write to {path}, and so have your tokens sent elsewhere. Type: chmod o-w {path}")
