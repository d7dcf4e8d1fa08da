"""The files of the project, as the tests of this folder read them."""

from __future__ import annotations

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "evenflow"
STATEMENTS = SOURCE / "store" / "sql"
DOCS = ROOT / "docs"

_NOT_OURS = {".git", ".venv", ".evenflow", "build", "dist", "__pycache__"}


@cache
def project_files() -> tuple[Path, ...]:
    """Every file that is, or would be, under version control; without git, every file that no tool made."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        found = [ROOT / line for line in listed.stdout.splitlines()]
    else:
        found = [path for path in ROOT.rglob("*") if not _NOT_OURS & set(path.relative_to(ROOT).parts)]
    return tuple(sorted(path for path in found if path.is_file()))


@cache
def source_modules() -> dict[str, Path]:
    """Module name to file, for everything under ``src/evenflow``."""
    modules = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = ("evenflow", *path.relative_to(SOURCE).with_suffix("").parts)
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All that a module's tree is made of, walked once for all that look for something in it."""
    return tuple(ast.walk(tree(path)))


def trees_with(word: str) -> list[tuple[str, ast.Module]]:
    """The modules that have this word, by name."""
    return [(module, tree(path)) for module, path in source_modules().items() if word in path.read_text(encoding="utf-8")]


def classes() -> list[tuple[str, ast.ClassDef]]:
    """Of each module, those inside of functions and classes, too."""
    return [(module, node) for module, path in source_modules().items() for node in nodes(path) if isinstance(node, ast.ClassDef)]


@cache
def strings(path: Path) -> frozenset[str]:
    """Every string constant of a module, the parts of f-strings included."""
    found = (node.value for node in nodes(path) if isinstance(node, ast.Constant))
    return frozenset(value for value in found if isinstance(value, str))


def imported_names(path: Path) -> set[str]:
    """Top-level names of what a module imports absolutely."""
    names: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
