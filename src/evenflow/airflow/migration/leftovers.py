"""Entries of Airflow's context that a file still reads, and that Evenflow lacks: people must decide what replaces them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from jinja2 import Environment, TemplateError, meta, nodes

from evenflow.airflow.airflow2.old_settings import OLD_ENTRIES
from evenflow.airflow.migration.judging import Remark
from evenflow.sdk.context_entries import MISSING_ENTRIES

_GONE = OLD_ENTRIES.keys() | MISSING_ENTRIES.keys()
_SYNTAX = Environment(autoescape=False)
_FILE = re.compile(r"[\w./-]+\.\w+")


def leftovers(tree: ast.Module, folder: Path) -> Iterator[Remark]:
    """``folder`` is that of the file's templates."""
    walked = list(ast.walk(tree))
    contexts = {"context", *(node.kwarg.arg for node in walked if isinstance(node, ast.arguments) and node.kwarg)}
    plain = {id(node.value) for node in walked if isinstance(node, ast.Expr)}  # documentation
    for node in walked:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and getattr(node, "name", "") != "__init__":
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            yield from (_remark(each.lineno, each.arg) for each in given if each.arg in OLD_ENTRIES)
        elif isinstance(node, ast.Attribute) and node.attr in OLD_ENTRIES and ast.unparse(node.value) != "self":
            yield _remark(node.lineno, node.attr, ast.unparse(node))
        elif (asked := _asked(node)) is not None and asked[1] in (_GONE if _is_context(asked[0], contexts) else OLD_ENTRIES):
            yield _remark(node.lineno, asked[1])  # type: ignore[attr-defined]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in plain:
            yield from _of_text(node, node.value, folder)


def _asked(node: ast.AST) -> tuple[ast.expr, str] | None:
    """Returns what is asked, and for which name: ``x["name"]``, ``x.get("name")``."""
    if isinstance(node, ast.Subscript):
        base, key = node.value, node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "pop") and node.args:
        base, key = node.func.value, node.args[0]
    else:
        return None
    return (base, key.value) if isinstance(key, ast.Constant) and isinstance(key.value, str) else None


def _is_context(base: ast.expr, contexts: set[str]) -> bool:
    return ast.unparse(base) in contexts or ast.unparse(base).endswith("get_current_context()")


def _of_text(node: ast.Constant, text: str, folder: Path) -> Iterator[Remark]:
    last = node.end_lineno or node.lineno
    if "{{" in text or "{%" in text:
        yield from (_remark(min(node.lineno + line - 1, last), *names) for line, *names in _of_template(text))
    elif _FILE.fullmatch(text) and not text.endswith(".py") and (folder / text).is_file():
        inside = (folder / text).read_text(encoding="utf-8", errors="replace")
        for line, name, *_ in _of_template(inside):
            yield _remark(node.lineno, name, f"{text}:{line}: {name}")


def _of_template(text: str) -> Iterator[tuple[int, str] | tuple[int, str, str]]:
    """Yields lines, and the names on them."""
    try:
        tree = _SYNTAX.parse(text)
        names = meta.find_undeclared_variables(tree) & _GONE
    except TemplateError:  # a part of an assembled text
        yield from (
            (text[: found.start()].count("\n") + 1, found[0]) for found in re.finditer(r"\w+", text) if found[0] in OLD_ENTRIES
        )
        return
    for name in dict.fromkeys((each.lineno, each.name) for each in tree.find_all(nodes.Name)):
        if name[1] in names:
            yield name
    for each in tree.find_all(nodes.Getattr):
        if each.attr in OLD_ENTRIES:
            yield each.lineno, each.attr, f".{each.attr}"


def _remark(line: int, name: str, shown: str = "") -> Remark:
    if name in OLD_ENTRIES:
        return Remark(line, "error", f"{shown or name} is of Airflow 2. Write {OLD_ENTRIES[name]}.")
    return Remark(line, "error", f"Evenflow's context has no {shown or name}. {MISSING_ENTRIES[name]}")
