"""Pythons beside Evenflow's own: each loads and runs the DAG files of bundles that name it, with the packages that are installed
there. Evenflow itself is installed there, too, in the same version, and imports nothing of theirs into its services.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evenflow.errors import EvenflowError


class NoSuchEnvironment(EvenflowError):
    """A DAG is for a Python that is not known here, or is not there."""


class Environments:
    """``pythons`` are their paths by name; in each of them ``module`` is what is run."""

    def __init__(self, module: str, pythons: Mapping[str, str]) -> None:
        self._module, self._pythons = module, pythons

    def program(self, name: str) -> tuple[str, str]:
        """What is run for the environment of this name, and by which Python. Raises :class:`NoSuchEnvironment`."""
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
