"""What a Python source file says, without running it: its size, what it defines, and what it imports.

A file that cannot be read is a row with a reason, never an exception: a census counts what it meets.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

MAX_BYTES = 2 * 2**20  # generated tables; a syntax tree takes fifty times the memory of its source

# When an import statement runs: as the module is imported, later inside a function, or only for a type checker.
ON_IMPORT, LAZY, TYPING = "import", "lazy", "typing"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass
class Facts:
    """``status`` is ``ok``, ``error`` or ``skipped``, or why it was not opened; ``imports`` are (absolute target, when, line)."""

    status: str
    reason: str | None = None
    line: int | None = None  # of the error
    lines: int = 0
    functions: int = 0
    classes: int = 0
    docstring: bool = False
    imports: list[tuple[str, str, int]] = field(default_factory=list)


def read_facts(path: str, module: str | None, is_package: bool, max_bytes: int = MAX_BYTES) -> Facts:
    """The facts of one file; ``module`` is its name, to which relative imports are relative."""
    try:
        with open(path, "rb") as file:
            source = file.read(max_bytes + 1)
    except OSError as error:
        return Facts("error", f"{type(error).__name__}: {error.strerror}")
    if len(source) > max_bytes:
        return Facts("skipped", f"larger than {max_bytes:,} bytes")
    return parse(source, module, is_package)


def parse(source: bytes, module: str | None, is_package: bool) -> Facts:
    """The facts of a source text, decoded as its byte order mark or coding cookie says."""
    lines = source.count(b"\n") + (not source.endswith(b"\n") and bool(source))
    try:
        with warnings.catch_warnings():  # e.g. of invalid escapes, one for each file that has them
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except SyntaxError as error:
        return Facts("error", f"{type(error).__name__}: {error.msg}", error.lineno, lines)
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes; nesting beyond what the parser's stack holds
        return Facts("error", f"{type(error).__name__}: {error}", None, lines)
    facts = Facts("ok", lines=lines, docstring=ast.get_docstring(tree, clean=False) is not None)
    for node, when in _statements(tree):
        match node:
            case ast.ClassDef():
                facts.classes += 1
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                facts.functions += 1
            case ast.Import():
                facts.imports += [(alias.name, when, node.lineno) for alias in node.names]
            case ast.ImportFrom():
                targets = from_targets(node.module, node.level, [alias.name for alias in node.names], module, is_package)
                facts.imports += [(target, when, node.lineno) for target in targets]
    return facts


def from_targets(base: str | None, level: int, names: list[str], module: str | None, is_package: bool) -> list[str]:
    """The absolute names that ``from base import names`` may mean, each either a module or something inside one.

    A relative import in a file without a module name, or one that climbs out of its package, keeps its dots: it can mean nothing.
    """
    stem = base or ""
    if level:
        parts = module.split(".") if module else []
        kept = len(parts) - (level - 1 if is_package else level)
        if kept < 1:
            return ["." * level + stem]
        stem = ".".join([*parts[:kept], stem] if stem else parts[:kept])
    return [stem if name == "*" else f"{stem}.{name}" for name in names]


def _statements(tree: ast.Module) -> Iterator[tuple[ast.stmt, str]]:
    """All statements, with when they run. Expressions are left out: they hold no imports and are four fifths of a tree."""
    stack: list[tuple[ast.AST, str]] = [(tree, ON_IMPORT)]
    while stack:
        node, when = stack.pop()
        if isinstance(node, ast.stmt):
            yield node, when
        if isinstance(node, _FUNCTIONS):
            when = TYPING if when == TYPING else LAZY
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inside = getattr(node, name, None)
            if isinstance(inside, list):
                guarded = name == "body" and isinstance(node, ast.If) and _is_type_checking(node.test)
                stack.extend((child, TYPING if guarded else when) for child in inside)


def _is_type_checking(test: Any) -> bool:
    name = test.id if isinstance(test, ast.Name) else test.attr if isinstance(test, ast.Attribute) else None
    return name == "TYPE_CHECKING"
