"""A file of Airflow's, written as one of Evenflow's: its imports, and settings that have another name. All else stays as it is,
with its comments and its line breaks; a file of which one name has no counterpart is refused, and nothing of it is changed.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import evenflow
from evenflow import exceptions, timezone
from evenflow.airflow.airflow2.homes import home_of
from evenflow.airflow.airflow2.old_settings import LEFT_OUT, RENAMED_OF_DAGS, RENAMED_OF_TASKS
from evenflow.airflow.migration.judging import Remark, is_airflow, is_old
from evenflow.sdk.airflow_names import CURES

_TIMEZONES = ("airflow.sdk.timezone", "airflow.utils.timezone")
_RENAMED = RENAMED_OF_DAGS | RENAMED_OF_TASKS


@dataclass(frozen=True, slots=True)
class Rewritten:
    """``text`` is None if something has no counterpart; ``remarks`` say what. A file without a word of Airflow's keeps its text."""

    before: str
    text: str | None
    remarks: list[Remark]


@dataclass(frozen=True, slots=True, order=True)
class _Edit:
    start: int
    end: int
    text: str


def rewrite(path: Path) -> Rewritten:
    before = path.read_text(encoding="utf-8")
    try:
        tree = ast.parse(before)
    except (SyntaxError, ValueError) as error:
        return Rewritten(before, None, [Remark(getattr(error, "lineno", None) or 1, "error", f"It is no Python: {error}")])
    return _Rewriting(before, tree).done()


class _Rewriting:
    def __init__(self, before: str, tree: ast.Module) -> None:
        self._before, self._tree = before, tree
        self._starts = [0]  # of lines, in bytes, as the columns of nodes are
        for line in before.encode().splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._edits: list[_Edit] = []
        self._remarks: list[Remark] = []
        self._names: dict[str, str] = {}  # in the file, that are another one now

    def done(self) -> Rewritten:
        nodes = list(ast.walk(self._tree))
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module and is_airflow(node.module):
                self._import(node, node.module)
            elif isinstance(node, ast.Import) and any(is_airflow(alias.name) for alias in node.names):
                self._refuse(node.lineno, f"{ast.unparse(node)}: import the names that the file needs, each by itself.")
        if self._edits:
            for node in nodes:
                self._use(node)
        if self._remarks:
            return Rewritten(self._before, None, sorted(self._remarks, key=lambda remark: remark.line))
        text = self._before.encode()
        for edit in sorted(self._edits, reverse=True):
            text = text[: edit.start] + edit.text.encode() + text[edit.end :]
        return Rewritten(self._before, text.decode(), [])

    def _import(self, node: ast.ImportFrom, module: str) -> None:
        lines: dict[str, list[str]] = {}
        for alias in node.names:
            if module in _TIMEZONES and hasattr(timezone, alias.name):
                self._names[alias.asname or alias.name] = f"timezone.{alias.name}"
                lines.setdefault("evenflow", []).append("timezone")
                continue
            place, name = self._counterpart(node.lineno, module, alias.name)
            if not name:
                continue
            if name != alias.name and alias.asname is None:
                self._names[alias.name] = name
            lines.setdefault(place, []).append(f"{name} as {alias.asname}" if alias.asname else name)
        indent = "\n" + " " * node.col_offset
        written = indent.join(f"from {place} import {', '.join(dict.fromkeys(names))}" for place, names in lines.items())
        self._edit(node, written)

    def _counterpart(self, line: int, module: str, name: str) -> tuple[str, str]:
        """The module of Evenflow's to import from, and the name in it; two empty texts after a refusal."""
        home = home_of(name) if is_old(module) else None
        now = home.name if home is not None and home.kind == "moved" else name
        if hasattr(exceptions, now):
            return "evenflow.exceptions", now
        if now in evenflow.__all__:
            return "evenflow", now
        cure = CURES.get(name) or CURES.get(now) or "Evenflow has nothing of this name: let Airflow's own run the file."
        self._refuse(line, f"{module}.{name}: {cure}")
        return "", ""

    def _use(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name) and node.id in self._names:
            self._edit(node, self._names[node.id])
        elif isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg in LEFT_OUT:
                    self._leave_out(node, keyword)
                elif keyword.arg in _RENAMED:
                    start = self._at(keyword.lineno, keyword.col_offset)
                    self._edits.append(_Edit(start, start + len(keyword.arg), _RENAMED[keyword.arg]))

    def _leave_out(self, call: ast.Call, keyword: ast.keyword) -> None:
        """With the comma that belongs to it."""
        arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
        given = sorted(self._span(each) for each in arguments)
        here = self._span(keyword)
        place = given.index(here)
        if place + 1 < len(given):
            self._edits.append(_Edit(here[0], given[place + 1][0], ""))
        else:
            self._edits.append(_Edit(given[place - 1][1] if place else here[0], here[1], ""))

    def _refuse(self, line: int, message: str) -> None:
        self._remarks.append(Remark(line, "error", message))

    def _edit(self, node: ast.stmt | ast.expr, text: str) -> None:
        start, end = self._span(node)
        self._edits.append(_Edit(start, end, text))

    def _span(self, node: ast.stmt | ast.expr | ast.keyword) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column
