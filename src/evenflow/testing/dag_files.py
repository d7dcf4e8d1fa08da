"""DAG files for tests: loaded as a processor loads them, or checked as ``evenflow dags check`` does."""

from __future__ import annotations

import asyncio
import traceback
from pathlib import Path

from evenflow.errors import DagFileError, DagNotFound, DuplicateId
from evenflow.processor.checking import Checked, CheckedFile, check_files
from evenflow.processor.folder import DagFolder
from evenflow.processor.parsing import ParseLimits
from evenflow.sdk.dag import DAG
from evenflow.sdk.loading.loader import load_file


def find_files(folder: Path) -> list[str]:
    """Returns the DAG files of a folder, by their paths below it. Raises :class:`DagNotFound` when the folder does not exist."""
    if not folder.is_dir():
        raise DagNotFound(f"There is no DAG folder {folder}.")
    return sorted(DagFolder(folder).scan().files)


def load_dags(path: Path, root: Path | None = None) -> dict[str, DAG]:
    """Returns the DAGs of a file or of a folder, by id. Local modules are found from ``root``: the folder, or that of the file.

    Raises :class:`DagFileError`, with file and line, when a file cannot be loaded.
    """
    if path.is_dir():
        root = root or path
        files = [path / file for file in find_files(path)]
    elif path.is_file():
        root = root or path.parent
        files = [path]
    else:
        raise DagNotFound(f"There is no file or folder {path}.")
    found: dict[str, DAG] = {}
    for file in files:
        for dag_id, dag in _load(file, root).items():
            if dag_id in found:
                raise DuplicateId(f"The DAG {dag_id!r} of {file} is already defined in {found[dag_id].file}. Rename one.")
            found[dag_id] = dag
    return found


def check_folder(folder: Path) -> Checked:
    """Loads each file twice, in separate processes."""
    files = [CheckedFile(folder.resolve(), file) for file in find_files(folder)]
    return asyncio.run(check_files(files, ParseLimits()))


def _load(file: Path, root: Path) -> dict[str, DAG]:
    try:
        return load_file(file, root).dags
    except DagFileError:
        raise
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file.resolve())]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        message = error.msg if isinstance(error, SyntaxError) else str(error)
        raise DagFileError(
            file.resolve().relative_to(root.resolve()).as_posix(), line, f"{type(error).__name__}: {message}"
        ) from error
