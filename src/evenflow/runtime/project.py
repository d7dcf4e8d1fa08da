"""A project: the directory of a command, its file of settings, and the names that follow from it."""

from __future__ import annotations

import hashlib
import os
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from pydantic_settings import TomlConfigSettingsSource

CONFIG_FILE = "evenflow.toml"
PATHS = ("home", "dags", "secrets_dir", "tls_cert", "tls_key", "tls_client_ca", "tls_ca", "kubernetes_template", "history")
_MARKS = (".evenflow", CONFIG_FILE, "pyproject.toml", ".git")


class ConfigFile(TomlConfigSettingsSource):
    """Paths in the file are relative to it."""

    def _read_file(self, file_path: Path | Traversable) -> dict[str, Any]:
        values = super()._read_file(file_path)
        for name in PATHS:
            if isinstance(values.get(name), str):
                values[name] = _beside(values[name])
        environments = values.get("environments")
        if isinstance(environments, dict):
            values["environments"] = {name: _beside(python) for name, python in environments.items()}
        bundles = values.get("bundles")
        for bundle in bundles.values() if isinstance(bundles, dict) else ():
            if isinstance(bundle, dict) and isinstance(bundle.get("folder"), str):
                bundle["folder"] = _beside(bundle["folder"])
        return values


def _beside(path: Any) -> Any:
    """Resolves a path. Other values pass, and fail their check later."""
    return str(config_file().parent / Path(path).expanduser()) if isinstance(path, str) else path


def project_dir(start: Path | None = None) -> Path:
    """Returns the nearest directory from ``start`` (the current one) upwards that looks like a project, else ``start``."""
    start = (start or Path.cwd()).absolute()
    for directory in (start, *start.parents):
        if directory != Path.home() and any((directory / mark).exists() for mark in _MARKS):
            return directory
    return start


def default_home() -> Path:
    """Returns ``.evenflow`` of the project around the current directory, or the user's own without a project."""
    project = project_dir()
    if any((project / mark).exists() for mark in _MARKS):
        return project / ".evenflow"
    return Path.home() / ".evenflow"


def bundle_of(folder: Path) -> str:
    """Returns the bundle name of a folder. It is the same for every processor on this folder."""
    path = folder.expanduser().absolute()
    return f"{path.name[:80] or 'root'}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:8]}"


def config_file() -> Path:
    return project_dir() / CONFIG_FILE
