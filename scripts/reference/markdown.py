"""From docstrings, signatures and comments to Markdown."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable
from types import ModuleType
from typing import Any


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def prose(text: str) -> str:
    """What docstrings and comments say; of reStructuredText they use roles, literals and literal blocks."""
    text = re.sub(r":\w+:`~?(?:\w+\.)*(\w+)`", r"`\1`", textwrap.dedent(text).strip())
    text = re.sub(r"(?m)::$", ":", text).replace("``", "`")
    return re.sub(r"`[^`]*`|<", lambda match: "&lt;" if match[0] == "<" else match[0], text)


def sentence(comment: str) -> str:
    return comment and comment[0].upper() + comment[1:].removesuffix(".") + "."


def signature_of(value: Any) -> str:
    """``(a: int, b: str = "x") -> None``, annotations as they are written, without ``self``."""
    signature = inspect.signature(value)
    parameters = [
        p.replace(annotation=_bare(p.annotation), default=_shown(p.default))
        for p in signature.parameters.values()
        if p.name != "self"
    ]
    return str(signature.replace(parameters=parameters, return_annotation=_bare(signature.return_annotation)))


class _Verbatim(str):
    def __repr__(self) -> str:
        return str(self)


def _bare(annotation: Any) -> Any:
    if annotation is inspect.Parameter.empty:
        return annotation
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return _Verbatim(re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", text))


def _shown(default: Any) -> Any:
    opaque = default is not inspect.Parameter.empty and re.match(r"<.*>$", repr(default))
    return _Verbatim("...") if opaque else default


def split_arguments(text: str) -> list[str]:
    """Splits at commas outside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def class_node(module: ModuleType, name: str) -> ast.ClassDef:
    return next(node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.ClassDef) and node.name == name)


def fields_of(module: ModuleType, name: str) -> list[ast.AnnAssign]:
    return [node for node in class_node(module, name).body if isinstance(node, ast.AnnAssign)]


def trailing_comments(module: ModuleType, name: str) -> dict[str, str]:
    """The comment behind each assignment in the body of a class; empty where there is none."""
    lines = inspect.getsource(module).splitlines()
    comments = {}
    for node in class_node(module, name).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(target, ast.Name):
            match = re.search(r"\s{2}# (.*)$", lines[node.lineno - 1])
            comments[target.id] = prose(match[1]) if match else ""
    return comments
