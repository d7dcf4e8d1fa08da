"""Finds the local files that a Python file imports, by its text: this includes imports inside functions, which have not run yet
when the file is loaded.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path


def local_imports(path: Path, root: Path) -> set[Path]:
    """Returns the file, and every file below ``root`` that it imports, directly or not, by a name that starts at ``root``."""
    found: set[Path] = set()
    to_read = [path]
    while to_read:
        file = to_read.pop()
        if file in found:
            continue
        found.add(file)
        if file.suffix == ".py":
            to_read.extend(_imported(file, root))
    return found


def _imported(file: Path, root: Path) -> Iterator[Path]:
    try:
        tree = ast.parse(file.read_bytes())
    except SyntaxError:  # of a module that is imported lazily; its import reports this
        return
    package = file.relative_to(root).parts[:-1]
    for node in _statements(tree.body):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files_of(alias.name.split("."), root)
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1]] if node.level else []
            parts = [*base, *(node.module.split(".") if node.module else [])]
            yield from _files_of(parts, root)
            for alias in node.names:
                yield from _files_of([*parts, alias.name], root)


def _statements(block: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yields all statements of a block, including nested ones. An import is a statement, so expressions, most of a file, are
    skipped.
    """
    left = [*block]
    while left:
        node = left.pop()
        yield node
        for inner in ("body", "orelse", "finalbody", "handlers", "cases"):
            left.extend(getattr(node, inner, ()))


def _files_of(parts: list[str], root: Path) -> Iterator[Path]:
    """Yields the files of the module ``a.b.c``: its own, and the ``__init__.py`` of every package on the way."""
    folder = root
    for part in parts:
        module = folder / f"{part}.py"
        folder = folder / part
        if (folder / "__init__.py").is_file():
            yield folder / "__init__.py"
        elif module.is_file():
            yield module
            return
        elif not folder.is_dir():
            return
