"""Imports of Airflow 2 that no longer exist: each returns its present replacement, and warns with what to write.

Airflow's own redirections come first: this looks only for what they do not find, and changes nothing on disk.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from evenflow.airflow.airflow2 import settings
from evenflow.airflow.airflow2.homes import LACKING, Home, home_of, is_no_more, was_flat
from evenflow.airflow.airflow2.old_settings import VALUES_OF_CALLS


def install() -> None:
    """Installs the finders. A second call does nothing."""
    if not any(isinstance(finder, _NoMore) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Lacking())
        sys.meta_path.append(_NoMore())
        _complete()
        for loaded in (sys.modules[name] for name in VALUES_OF_CALLS if name in sys.modules):  # by a plugin
            settings.translate_values_of(loaded)


class _OldModule(ModuleType):
    """Looks up a name when the module, with its own ``__getattr__``, does not know it."""

    def __getattr__(self, name: str) -> Any:
        home = home_of(name)
        if home is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return _found(home, f"{self.__name__}.{name}")


def _found(home: Home, old: str) -> Any:
    if home.kind == "gone":
        raise ImportError(f"Airflow 3 has no {old}. {home.instead}")
    warnings.warn(f"{old} is of Airflow 2. Write {home.instead}.", DeprecationWarning, stacklevel=3)
    try:
        found = importlib.import_module(home.module)
    except ModuleNotFoundError as error:
        if error.name is not None and home.module.startswith(f"{error.name}."):
            error.name = home.module  # several providers may be below the first package that is missing
        raise
    try:
        return getattr(found, home.name)
    except AttributeError:
        raise ImportError(f"{home.module}, as it is installed here, has no {home.name}.", name=home.module) from None


class _NoMore(MetaPathFinder, Loader):
    """The last finder: for modules that no other finder knows."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        known = is_no_more(fullname) or was_flat(fullname)
        return ModuleSpec(fullname, self, is_package=True) if known else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _OldModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing: the module is empty."""


class _Lacking(MetaPathFinder):
    """The first finder: for existing modules that have lost names, or forms of settings."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname not in LACKING and fullname not in VALUES_OF_CALLS:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Completed(spec.loader)
        return spec


class _Completed(Loader):
    """Works like the module's own loader, and then completes the module."""

    def __init__(self, real: Loader) -> None:
        self._real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._real.exec_module(module)
        _complete()
        if module.__name__ in VALUES_OF_CALLS:
            settings.translate_values_of(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def _complete() -> None:
    """Completes all at once, because a package of Airflow may have made modules below it."""
    for name in LACKING:
        module = sys.modules.get(name)
        if module is not None and not isinstance(module, _OldModule):
            module.__class__ = _OldModule
