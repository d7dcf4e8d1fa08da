"""Loads a DAG file: its DAGs, and the local modules that it needs.

``root`` is put last on ``sys.path``, so a DAG file imports its neighbours by their path below ``root``: ``from lib.tables import
TABLES`` for ``root/lib/tables.py``. It is last, because otherwise ``email.py`` would be what every library means by ``import
email``; :mod:`evenflow.sdk.loading.hidden_modules` finds files that are hidden so. The file itself is loaded under a name of its
own (``evenflow_dag_...``), so that a DAG file called ``json.py`` does not hide a module. The name depends only on its path below
``root``, so that other processes that load it elsewhere find its classes again.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from evenflow.errors import DagError, DagFileError, DuplicateId
from evenflow.sdk.dag import DAG, DagFunction, observed
from evenflow.sdk.loading.hidden_modules import hidden_files
from evenflow.sdk.loading.imports import local_imports

MODULE_PREFIX = "evenflow_dag_"

# Modules from before any DAG file. They are the large majority, and in a forked process, which must copy the memory that it
# touches, a look at each costs nearly as much as to run a small file.
_LOADED_BEFORE = frozenset(sys.modules)


_ROOTS: set[str] = set()  # roots that this module put on sys.path


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedFile:
    """``modules`` are the files below the root that the DAG file needs, including itself, found in its imports and in what they
    loaded.
    """

    path: Path
    dags: dict[str, DAG]
    lines: dict[str, int]  # of the file, by dag_id: where the DAG is made
    modules: list[Path]
    uncalled: dict[str, int]  # its functions with @dag that made no DAG, by name: their lines
    hidden: dict[Path, str]  # files that it means to import and does not get, each with an explanation


def load_file(path: Path, root: Path) -> LoadedFile:
    """Runs the file. A DAG belongs to it when its code, or a function that it called, made the DAG; not if an imported module did.

    Raises :class:`DagFileError`, with file and line, for the author's mistakes about DAGs; any other exception of the file passes
    through.
    """
    path, root = path.resolve(), root.resolve()
    if not path.is_relative_to(root):
        raise DagError(f"The DAG file {path} is not below {root}. Move it there, or give the folder that it is in.")
    _search(str(root))
    dags: dict[str, DAG] = {}
    lines: dict[str, int] = {}

    def collect(dag: DAG) -> None:
        if _loading_file() == str(path):
            if dag.dag_id in dags:
                raise DuplicateId(f"This file has two DAGs with the id {dag.dag_id!r}. Give one of them another dag_id.")
            dags[dag.dag_id] = dag
            lines[dag.dag_id] = _line_now(path)
            dag.file = path

    name = module_name(path, root)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with observed(collect):
            # Not by the import system, whose bytecode cache misses an edit within one second that keeps the size.
            exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), module.__dict__)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, DagError):
            raise DagFileError(path.relative_to(root).as_posix(), _line_in(error, path), str(error)) from error
        if isinstance(error, ImportError) and (cure := _cure(error, path, root)):
            error.add_note(cure)
        raise
    below = f"{root}{os.sep}"
    loaded = {file for name in _modules_below(below) if (file := _local_file(name, root))}
    needed = local_imports(path, root) | loaded
    hidden = hidden_files(needed - {path}, root)
    return LoadedFile(
        path=path,
        dags=dags,
        lines=lines,
        modules=sorted(needed - hidden.keys()),
        uncalled={
            made.function.__name__: made.function.__code__.co_firstlineno
            for made in vars(module).values()
            if isinstance(made, DagFunction) and not made.was_called and made.function.__code__.co_filename == str(path)
        },
        hidden=hidden,
    )


def _search(root: str) -> None:
    """Puts the root behind installed packages, and before the roots of files that were loaded earlier."""
    if root in sys.path and root not in _ROOTS:  # a setting has put it earlier
        return
    _ROOTS.add(root)
    sys.path[:] = [path for path in sys.path if path not in _ROOTS] + [root, *(p for p in sys.path if p in _ROOTS and p != root)]


def module_name(path: Path, root: Path) -> str:
    """Returns the name of a DAG file in ``sys.modules``."""
    return MODULE_PREFIX + re.sub(r"\W", "_", path.relative_to(root).with_suffix("").as_posix())


def _loading_file() -> str | None:
    """Returns the file whose top level is running: that of the innermost module frame that is not a text for ``exec``."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and (frame.f_code.co_name != "<module>" or frame.f_code.co_filename.startswith("<")):
        frame = frame.f_back
    return frame.f_code.co_filename if frame is not None else None


def _line_now(path: Path) -> int:
    """Returns the running line of the file, in the innermost frame within it."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename != str(path):
        frame = frame.f_back
    return frame.f_lineno if frame is not None else 1


def _modules_below(folder: str) -> list[str]:
    """Returns the names of loaded modules whose file is in the folder, without a path operation for each."""
    later = [name for name in sys.modules if name not in _LOADED_BEFORE]
    files = {name: getattr(sys.modules[name], "__file__", None) for name in later}
    return [name for name, file in files.items() if isinstance(file, str) and file.startswith(folder)]


def _local_file(name: str, root: Path) -> Path | None:
    """Returns the file of a loaded module that was found by its path below ``root``."""
    file = getattr(sys.modules[name], "__file__", None)
    expected = root.joinpath(*name.split("."))
    return next((path for path in (expected.with_suffix(".py"), expected / "__init__.py") if file == str(path)), None)


def _line_in(error: BaseException, path: Path) -> int | None:
    """Returns the line of the DAG file at which the error arose, in the innermost frame within it."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None


def _cure(error: ImportError, path: Path, root: Path) -> str | None:
    from evenflow.sdk.loading.missing_modules import explain

    return explain(error, path, root)
