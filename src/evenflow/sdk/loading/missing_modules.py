"""What to do about a failed import: another name, a package to install, or another line for one from Airflow."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import evenflow
from evenflow.sdk.airflow_names import CURES
from evenflow.sdk.loading.hidden_modules import hiding
from evenflow.sdk.loading.installed_modules import cure_of_module, misspelt_name

WRITTEN_FOR_AIRFLOW = "The file is written for Airflow"
_PROVIDERS = "Evenflow has no providers: call the system's own client or command in a function with @task or @task.bash."


@dataclass(frozen=True, slots=True)
class AirflowImport:
    """A line that imports from Airflow, and what to write instead."""

    line: int
    written: str
    instead: str

    def __str__(self) -> str:
        return f"{self.written} -> {self.instead}"


def airflow_imports(source: bytes) -> list[AirflowImport]:
    """Returns all imports from Airflow that loading the file, or a task, would run; none for a text that is not Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    return sorted(_found(tree), key=lambda each: each.line)


def _found(node: ast.AST) -> Iterator[AirflowImport]:
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            for other in node.orelse:
                yield from _found(other)
        case ast.ImportFrom(module=str(module), level=0) if _is_airflow(module):
            names = [alias.name for alias in node.names]
            written = f"from {module} import {', '.join(names)}"
            yield AirflowImport(node.lineno, written, replacement(module, names))
        case ast.Import():
            for alias in node.names:
                if _is_airflow(alias.name):
                    yield AirflowImport(node.lineno, f"import {alias.name}", "Import the names that you need from evenflow.")
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _found(child)


def _is_airflow(module: str) -> bool:
    return module == "airflow" or module.startswith("airflow.")


def replacement(module: str, names: list[str]) -> str:
    """Returns what to write instead of ``from module import names``: a line for known names, a sentence for each other one."""
    from evenflow import exceptions

    if module in ("airflow.sdk.timezone", "airflow.utils.timezone"):
        return f"from evenflow import timezone, then timezone.{names[0]}"
    lines: dict[str, list[str]] = {}
    sentences: dict[str, list[str]] = {}
    for name in names:
        if name in evenflow.__all__ and not (module.endswith(".exceptions") and hasattr(exceptions, name)):
            lines.setdefault("evenflow", []).append(name)
        elif hasattr(exceptions, name):
            lines.setdefault("evenflow.exceptions", []).append(name)
        else:
            unknown = _PROVIDERS if module.startswith("airflow.providers.") else "Evenflow has nothing of this name."
            sentences.setdefault(CURES.get(name, unknown), []).append(name)
    told = [f"from {place} import {', '.join(found)}" for place, found in lines.items()]
    told += [f"{', '.join(missing)}: {cure}" for cure, missing in sentences.items()] if told or len(sentences) > 1 else [*sentences]
    return "; ".join(told)


def explain(error: ImportError, path: Path, root: Path) -> str | None:
    """Returns what to do about a module, or a name in one, that ``path`` below ``root`` or its local imports do not find."""
    top = (error.name or "").partition(".")[0]
    beside = path.parent
    if not top:
        return None
    if top == "airflow":
        told = "\n".join(f"  line {each.line}: {each}" for each in airflow_imports(_innermost(error, root, path).read_bytes()))
        cure = "Run it as it is (docs/how-to/run-your-airflow-dags.md), or import from evenflow instead"
        return f"{WRITTEN_FOR_AIRFLOW} ({error}). {cure}:\n{told}"
    if hidden := hiding(top, root):
        return hidden
    if not isinstance(error, ModuleNotFoundError):
        return misspelt_name(error)
    if beside != root and ((beside / f"{top}.py").exists() or (beside / top).is_dir()):
        dotted = ".".join((*beside.relative_to(root).parts, top))
        return f"{top} lies beside the DAG file, but modules are found from {root}. Import {dotted} instead."
    if top == root.name:
        return (
            f"{top} is the folder from which modules are found. Leave {top!r} out of the import, or make {root.parent} the folder "
            "of the DAGs, with an ignore file for what is none."
        )
    if (root.parent / f"{top}.py").exists() or (root.parent / top).is_dir():
        return (
            f"{top} lies in {root.parent}, but modules are found from {root}. Make {root.parent} the folder of the DAGs, with an "
            f"ignore file for what is none, or move {top} into {root.name}."
        )
    return cure_of_module(error.name or "")


def _innermost(error: BaseException, root: Path, path: Path) -> Path:
    """Returns the author's file in which the error arose."""
    found, trace = path, error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        found, trace = file if file.is_relative_to(root) else found, trace.tb_next
    return found
