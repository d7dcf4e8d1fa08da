"""Judges a file's use of Airflow by its imports, where no environment could load it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evenflow.airflow.airflow2.homes import LACKING, home_of, is_no_more, provider_of, was_flat
from evenflow.airflow.loading.refusals import IMPORTS


@dataclass(frozen=True, slots=True)
class Remark:
    line: int
    severity: Literal["error", "warning"]
    message: str


@dataclass(frozen=True, slots=True)
class Judged:
    """``needs`` are packages of providers that an environment for the file needs."""

    remarks: list[Remark]
    needs: list[str]


@dataclass(frozen=True, slots=True)
class ImportedName:
    """One name of an import from Airflow; ``name`` is empty for ``import airflow.x``."""

    line: int
    module: str
    name: str


NO_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)  # errors of the parser, also for deep nesting


def no_python(error: BaseException) -> Remark:
    return Remark(getattr(error, "lineno", None) or 1, "error", f"It is no Python: {error or type(error).__name__}")


def judge(path: Path) -> Judged:
    try:
        tree = ast.parse(path.read_bytes())
    except NO_PYTHON as error:
        return Judged([no_python(error)], [])
    remarks, needs = [], set()
    for imported in imported_names(tree):
        remark, module = _remark(imported)
        remarks += [remark] if remark is not None else []
        needs.add(provider_of(module))
    return Judged(sorted(remarks, key=lambda remark: remark.line), sorted(need for need in needs if need))


def imported_names(tree: ast.AST) -> Iterator[ImportedName]:
    """Yields names in the order of the file, including imports inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module and is_airflow(node.module):
            yield from (ImportedName(node.lineno, node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (ImportedName(node.lineno, alias.name, "") for alias in node.names if is_airflow(alias.name))


def is_airflow(module: str) -> bool:
    return module == "airflow" or module.startswith("airflow.")


def is_old(module: str) -> bool:
    """Returns whether the module, or some of its names, can no longer be imported."""
    return is_no_more(module) or was_flat(module) or module in LACKING


def _remark(imported: ImportedName) -> tuple[Remark | None, str]:
    """Returns a remark, and the module to which the name really belongs."""
    module, name = imported.module, imported.name
    if name in IMPORTS:
        return Remark(imported.line, "error", f"Evenflow has no {name}. {IMPORTS[name]}"), module
    if not is_old(module):
        return None, module
    home = home_of(name)
    if home is None:
        unknown = is_no_more(module)
        told = Remark(imported.line, "error", f"Airflow 3 has no {module}{f'.{name}' if name else ''}.")
        return (told if unknown else None), module
    if home.kind == "gone":
        return Remark(imported.line, "error", f"Airflow 3 has no {module}.{name}. {home.instead}"), module
    return Remark(imported.line, "warning", f"{module}.{name} is of Airflow 2. Write {home.instead}."), home.module
