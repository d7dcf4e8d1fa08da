"""Files beside a DAG file that its tasks read: they travel with its code, and a change of one makes a new version.

These are the templates that the fields of its tasks name, the files that those include, files that operators declare, and the
``data_files`` of its DAGs. Only files below the root of the bundle travel.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from evenflow.core.limits import MAX_DATA_BYTES, MAX_DATA_FILES
from evenflow.errors import DagError
from evenflow.sdk.dag import DAG
from evenflow.sdk.templating.templates import is_template, texts


def watched_paths(dags: Iterable[DAG], root: Path) -> list[str]:
    """Returns the paths below ``root`` that decide which data files exist: files, folders, and missing ones that would count."""
    found: set[str] = set()
    for dag in dags:
        if dag.folder is not None:
            found.update(_templates(dag, root))
            named = [*dag.header.data_files, *(name for task in dag.task_dict.values() for name in task.files_beside())]
            found.update(path for name in named if (path := _below(root, dag.folder / name)))
    return sorted(found)


def check_data_files(dags: Iterable[DAG], root: Path) -> None:
    """Raises :class:`DagError` for ``data_files`` that cannot travel, and for too many or too large ones."""
    for dag in dags:
        for name in dag.header.data_files:
            path = None if dag.folder is None else _below(root, dag.folder / name)
            if path is None:
                raise DagError(
                    f"DAG {dag.dag_id!r}: {name!r} of data_files is not below {root}. Move it there; what lies elsewhere does "
                    "not travel with the code."
                )
            if not (root / path).exists():
                raise DagError(f"DAG {dag.dag_id!r}: {name!r} of data_files is not there. It is looked for as {root / path}.")


def files_of(watched: Iterable[str], root: Path) -> list[str]:
    """Returns the data files at these paths below ``root``: in a folder, all that are not Python, hidden or in a cache.

    Raises :class:`DagError` for more than :data:`MAX_DATA_FILES` files or :data:`MAX_DATA_BYTES` bytes.
    """
    sizes: dict[str, int] = {}
    for path in watched:
        for file in _walk(root, path):
            sizes[file] = (root / file).stat().st_size
            if len(sizes) > MAX_DATA_FILES:
                raise DagError(
                    f"This file's DAGs have more than {MAX_DATA_FILES:,} data files (of {path!r}, for one). Name fewer in "
                    "data_files, or put them where tasks can fetch them."
                )
    if sum(sizes.values()) > MAX_DATA_BYTES:
        largest = max(sizes, key=sizes.__getitem__)
        raise DagError(
            f"The data files of this file's DAGs have {sum(sizes.values()):,} bytes (limit {MAX_DATA_BYTES:,}), {largest} alone "
            f"{sizes[largest]:,}. Put large data where tasks can fetch it."
        )
    return sorted(sizes)


def _walk(root: Path, path: str) -> Iterator[str]:
    place = root / path
    if place.is_file():
        yield path
    elif place.is_dir() and not place.is_symlink():
        with os.scandir(place) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
        for entry in entries:
            if not entry.name.startswith(".") and entry.name != "__pycache__" and not entry.name.endswith((".py", ".pyc")):
                yield from _walk(root, f"{path}/{entry.name}" if path != "." else entry.name)


def _templates(dag: DAG, root: Path) -> set[str]:
    """Returns the paths of the files that template fields name, by the same search as at rendering."""
    search = _FileSearch(dag, root)
    for task in dag.task_dict.values():
        values, endings = task.templates()
        search.look(texts(values), endings)
    return search.paths


class _FileSearch:
    """``paths`` are those at which the named files are searched, up to the first that exists."""

    def __init__(self, dag: DAG, root: Path) -> None:
        assert dag.folder is not None
        self._root = root
        self._folders = [*(dag.folder / each for each in dag.header.template_searchpath), dag.folder]
        self.paths: set[str] = set()

    def look(self, texts: Iterable[str], endings: tuple[str, ...]) -> None:
        for text in texts:
            if endings and text.endswith(endings):
                self._find(text.strip())
            elif "{%" in text:
                self._follow(text)

    def _find(self, name: str) -> None:
        if is_template(name):
            return  # its name is known only at rendering
        for folder in self._folders:
            path = _below(self._root, folder / name)
            known = path is None or path in self.paths
            if path is not None:
                self.paths.add(path)
            if (folder / name).is_file():
                if not known:
                    self._follow((folder / name).read_text(encoding="utf-8", errors="replace"))
                return

    def _follow(self, text: str) -> None:
        """Follows what a template includes, extends or imports by a literal name."""
        if "{%" not in text:
            return
        from jinja2 import Environment, TemplateSyntaxError
        from jinja2.meta import find_referenced_templates

        try:
            names = list(find_referenced_templates(Environment().parse(text)))
        except TemplateSyntaxError:
            return  # rendering it will report this
        for name in names:
            if name is not None:
                self._find(name)


def _below(root: Path, path: Path) -> str | None:
    """Returns the path below ``root``, however it is written; None if it is elsewhere."""
    relative = os.path.relpath(os.path.normpath(path), root)
    return None if relative.startswith("..") else Path(relative).as_posix()
