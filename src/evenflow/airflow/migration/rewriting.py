"""Rewrites a file of Airflow as one of Evenflow: its imports, and renamed settings. Everything else stays, with comments and line
breaks. If one name of a file has no counterpart, the file is refused, and nothing in it changes.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import evenflow
from evenflow import exceptions, timezone
from evenflow.airflow.airflow2.homes import home_of
from evenflow.airflow.migration.edits import Edits
from evenflow.airflow.migration.judging import NO_PYTHON, Remark, is_airflow, is_old, no_python
from evenflow.airflow.migration.leftovers import leftovers
from evenflow.airflow.migration.renaming import rename_settings
from evenflow.sdk.airflow_names import CURES

_TIMEZONES = ("airflow.sdk.timezone", "airflow.utils.timezone")


@dataclass(frozen=True, slots=True)
class Rewritten:
    """``text`` is None if something has no counterpart; ``remarks`` say what. A file that does not mention Airflow keeps
    its text.
    """

    before: str
    text: str | None
    remarks: list[Remark]

    @property
    def changed(self) -> bool:
        return self.text is not None and self.text != self.before


def rewrite(path: Path) -> Rewritten:
    try:
        before = path.read_bytes().decode()  # with its own line ends
        tree = ast.parse(before)
    except UnicodeDecodeError as error:
        return Rewritten("", None, [Remark(1, "error", f"Save it as UTF-8: {error}")])
    except NO_PYTHON as error:
        return Rewritten("", None, [no_python(error)])
    return _Rewriting(before, tree, path.parent).done()


class _Rewriting:
    def __init__(self, before: str, tree: ast.Module, folder: Path) -> None:
        self._before, self._tree, self._folder = before, tree, folder
        self._edits = Edits(before)
        self._remarks: list[Remark] = []
        self._names: dict[str, str] = {}  # in the file, with their new names
        self._airflows: dict[str, str] = {}  # names in the file, with Airflow's names

    def done(self) -> Rewritten:
        walked = list(ast.walk(self._tree))
        imports = []
        for node in walked:
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module and is_airflow(node.module):
                imports.append((node, self._counterparts(node, node.module)))
            elif isinstance(node, ast.Import) and any(is_airflow(alias.name) for alias in node.names):
                self._refuse(node.lineno, f"{ast.unparse(node)}: import the names that the file needs, each by itself.")
        if not imports and not self._remarks:
            return Rewritten(self._before, self._before, [])
        self._remarks += leftovers(self._tree, self._folder)
        self._refuse_other_meanings(walked)
        if self._remarks:
            return Rewritten(self._before, None, sorted(dict.fromkeys(self._remarks), key=lambda remark: remark.line))
        self._import(imports)
        for node in walked:
            if isinstance(node, ast.Name) and node.id in self._names:
                self._edits.replace(node, self._names[node.id])
        rename_settings(walked, self._airflows, self._edits)
        text = self._edits.text()
        try:
            ast.parse(text)
        except NO_PYTHON as error:
            told = f"Rewritten, it would be no Python ({error}). Write each import on lines of its own."
            return Rewritten(self._before, None, [Remark(getattr(error, "lineno", None) or 1, "error", told)])
        return Rewritten(self._before, text, [])

    def _refuse_other_meanings(self, walked: list[ast.AST]) -> None:
        """Refuses names that would be rewritten and have another meaning in the file, because it cannot tell which one each place
        means.
        """
        anew = self._names.keys() | {now.partition(".")[0] for now in self._names.values() if "." in now}
        for node in walked:
            for line, name in _bound(node):
                if name in anew:
                    self._refuse(line, f"{name} is something else here, too: give it another name.")

    def _import(self, imports: list[tuple[ast.ImportFrom, dict[str, list[str]]]]) -> None:
        """Writes the imports at the top of the file, one line for each module, at its first import."""
        tops = [(node, lines) for node, lines in imports if node in self._tree.body and self._edits.is_alone(node)]
        together: dict[str, list[str]] = {}
        for _, lines in tops:
            for place, names in lines.items():
                together.setdefault(place, []).extend(names)
        for node, lines in imports:
            if (node, lines) in tops:
                lines = {place: together.pop(place) for place in lines if place in together}
            indent = "\n" + " " * node.col_offset
            written = indent.join(f"from {place} import {', '.join(dict.fromkeys(names))}" for place, names in lines.items())
            if written:
                self._edits.replace(node, written)
            else:
                self._edits.drop(node)

    def _counterparts(self, node: ast.ImportFrom, module: str) -> dict[str, list[str]]:
        """Returns what to import, by Evenflow's module."""
        lines: dict[str, list[str]] = {}
        for alias in node.names:
            if module in _TIMEZONES and hasattr(timezone, alias.name):
                self._names[alias.asname or alias.name] = f"timezone.{alias.name}"
                lines.setdefault("evenflow", []).append("timezone")
                continue
            place, name = self._counterpart(node.lineno, module, alias.name)
            if not name:
                continue
            self._airflows[alias.asname or alias.name] = name
            if name != alias.name and alias.asname is None:
                self._names[alias.name] = name
            lines.setdefault(place, []).append(f"{name} as {alias.asname}" if alias.asname else name)
        return lines

    def _counterpart(self, line: int, module: str, name: str) -> tuple[str, str]:
        """Returns Evenflow's module to import from, and the name in it; two empty texts after a refusal."""
        home = home_of(name) if is_old(module) else None
        now = home.name if home is not None and home.kind == "moved" else name
        if hasattr(exceptions, now):
            return "evenflow.exceptions", now
        if now in evenflow.__all__:
            return "evenflow", now
        cure = CURES.get(name) or CURES.get(now) or "Evenflow has nothing of this name: let Airflow's own run the file."
        self._refuse(line, f"{module}.{name}: {cure}")
        return "", ""

    def _refuse(self, line: int, message: str) -> None:
        self._remarks.append(Remark(line, "error", message))


def _bound(node: ast.AST) -> list[tuple[int, str]]:
    """Returns line and name of what a node binds, except for imports from Airflow."""
    match node:
        case ast.arg():
            return [(node.lineno, node.arg)]
        case ast.Name(ctx=ast.Store()):
            return [(node.lineno, node.id)]
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [(node.lineno, node.name)]
        case ast.ImportFrom(module=str(module)) if is_airflow(module):
            return []
        case ast.Import() | ast.ImportFrom():
            return [(node.lineno, alias.asname or alias.name.partition(".")[0]) for alias in node.names]
    return []
