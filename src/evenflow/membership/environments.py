"""Pythons beside Evenflow's own: each loads and runs the DAG files of the bundles that name it, with its own packages. The same
version of Evenflow is installed there, too. Evenflow's services import nothing from these environments.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evenflow.errors import EvenflowError


class NoSuchEnvironment(EvenflowError):
    """A DAG needs a Python that this host does not name or have."""


class Environments:
    """``pythons`` has their paths by name; each of them runs ``module``."""

    def __init__(self, module: str, pythons: Mapping[str, str]) -> None:
        self._module, self._pythons = module, pythons

    def program(self, name: str) -> tuple[str, str]:
        """Returns the module for the environment of this name, and its Python. Raises :class:`NoSuchEnvironment`."""
        python = self._pythons.get(name)
        if python is None:
            known = ", ".join(sorted(self._pythons)) or "none"
            raise NoSuchEnvironment(
                f"this host has no environment {name!r} (it has: {known}). Name its Python in evenflow.toml of this host: "
                f'[environments], then {name} = "/path/of/its/bin/python".'
            )
        if not Path(python).exists():
            raise NoSuchEnvironment(
                f"the Python of environment {name!r} is not there: {python}. Make the environment, or name another one under "
                "[environments] in evenflow.toml of this host."
            )
        return self._module, python


NONE = Environments("", {})
