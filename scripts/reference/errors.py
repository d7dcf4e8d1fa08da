"""The tree of errors."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from evenflow import errors
from scripts.reference.markdown import class_node, prose


def page() -> str:
    head = "# Errors\n\nAll that Evenflow raises on purpose. A message says what happened, to what, and what to do about it."
    return "\n".join([head, "", *_tree(errors.EvenflowError, 0)])


def _tree(error: type[Exception], depth: int) -> Iterator[str]:
    says = re.sub(r"\s+", " ", (error.__doc__ or "").strip().split("\n\n")[0]) or _message(error)
    yield f"{'  ' * depth}- `{error.__name__}`: {prose(says)}"
    for child in error.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from _tree(child, depth + 1)


def _message(error: type[Exception]) -> str:
    """The text of an error that makes its own, its values shown as an ellipsis."""
    for node in ast.walk(class_node(errors, error.__name__)):
        match node:
            case ast.Call(func=ast.Attribute(attr="__init__"), args=[ast.JoinedStr(values=values), *_]):
                return "".join(str(value.value) if isinstance(value, ast.Constant) else "…" for value in values)
            case ast.Call(func=ast.Attribute(attr="__init__"), args=[ast.Constant(value=text), *_]):
                return str(text)
    raise ValueError(f"{error.__name__} has neither a docstring nor a message of its own.")
