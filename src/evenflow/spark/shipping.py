"""Sending a DAG's own functions to Spark's Python workers.

pyspark pickles a function of an importable module by its name. A DAG file, and the modules beside it, are importable in the
task's process alone: a worker, on another host or just in another process, would answer ModuleNotFoundError. Their functions
and classes travel by value instead; those of installed packages by name, as ever.
"""

from __future__ import annotations

import site
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

OURSELVES = "evenflow"  # installed, though an editable installation looks like local code


def ship_local_modules() -> list[str]:
    """Makes pyspark pickle by value what belongs to modules that are loaded now and not installed; returns their names.

    A local module that is imported later, inside the task, is not covered.
    """
    from pyspark import cloudpickle

    installed = _installed_roots()
    names = sorted(name for name, module in list(sys.modules.items()) if _is_local(name, module, installed))
    for name in names:
        cloudpickle.register_pickle_by_value(sys.modules[name])  # type: ignore[no-untyped-call]
    return names


def _installed_roots() -> tuple[Path, ...]:
    paths = [sysconfig.get_path(key) for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    return tuple({Path(p).resolve() for p in [*paths, *site.getsitepackages(), site.getusersitepackages()]})


def _is_local(name: str, module: ModuleType, installed: tuple[Path, ...]) -> bool:
    file = getattr(module, "__file__", None)
    if not file or not file.endswith(".py") or name.partition(".")[0] in (OURSELVES, "__main__", "__mp_main__"):
        return False
    if module.__name__ != name:  # an alias; the module is met again under its own name
        return False
    path = Path(file).resolve()
    return not any(path.is_relative_to(root) for root in installed)
