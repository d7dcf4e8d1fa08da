"""Imports of Airflow 2 that there are no more: each gives what has taken its place, and warns with what to write.

Airflow's own redirections come first: only what it does not find is looked for here, and nothing of it is changed on disk.
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

from evenflow.airflow.airflow2.homes import LACKING, Home, home_of, is_no_more, was_flat


def install() -> None:
    """Twice is once."""
    if not any(isinstance(finder, _NoMore) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Lacking())
        sys.meta_path.append(_NoMore())
        _complete()


class _OldModule(ModuleType):
    """Asked for a name when the module, with the ``__getattr__`` that it has itself, does not know it."""

    def __getattr__(self, name: str) -> Any:
        home = home_of(name)
        if home is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return _found(home, f"{self.__name__}.{name}")


def _found(home: Home, old: str) -> Any:
    if home.kind == "gone":
        raise ImportError(f"Airflow 3 has no {old}. {home.instead}")
    warnings.warn(f"{old} is of Airflow 2. Write {home.instead}.", DeprecationWarning, stacklevel=3)
    found = importlib.import_module(home.module)
    try:
        return getattr(found, home.name)
    except AttributeError:
        raise ImportError(f"{home.module}, as it is installed here, has no {home.name}.", name=home.module) from None


class _NoMore(MetaPathFinder, Loader):
    """Asked last: for modules that nobody else knows."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        known = is_no_more(fullname) or was_flat(fullname)
        return ModuleSpec(fullname, self, is_package=True) if known else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _OldModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing in it."""


class _Lacking(MetaPathFinder):
    """Asked first: for modules that there are, and that lack names which they once had."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname not in LACKING:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Completed(spec.loader)
        return spec


class _Completed(Loader):
    """As the loader that the module has, and a moment longer."""

    def __init__(self, real: Loader) -> None:
        self._real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._real.exec_module(module)
        _complete()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def _complete() -> None:
    """All at once: a package of Airflow's may have made modules below it."""
    for name in LACKING:
        module = sys.modules.get(name)
        if module is not None and not isinstance(module, _OldModule):
            module.__class__ = _OldModule
