"""The serialised DAG."""

from __future__ import annotations

import ast
import inspect

from evenflow.core import model
from scripts.reference.markdown import fields_of, prose, sentence, table, trailing_comments

_TYPES = (model.DagSpec, model.TaskSpec, model.Mapping, model.MapInput, model.GroupSpec, model.RunParamSpec, model.Schedule)


def page() -> str:
    parts = ["# DagSpec", prose(model.__doc__ or ""), f"This is format {model.FORMAT}."]
    for described in _TYPES:
        comments = trailing_comments(model, described.__name__)
        docstring = inspect.getdoc(described) or ""
        parts.append(f"## {described.__name__}")
        if not docstring.startswith(f"{described.__name__}("):  # else the one that dataclass makes
            parts.append(prose(docstring))
        rows = []
        for field in fields_of(model, described.__name__):
            name = ast.unparse(field.target)
            rows.append((f"`{name}`", f"`{ast.unparse(field.annotation)}`", _default(field.value), sentence(comments[name])))
        parts.append(table(("field", "type", "default", "meaning"), rows))
    return "\n\n".join(parts)


def _default(value: ast.expr | None) -> str:
    match value:
        case None:
            return "required"
        case ast.Call(keywords=[ast.keyword(arg="default_factory", value=factory)]):
            return f"`{ast.unparse(factory)}()`"
        case ast.Name(id=name):
            return f"`{getattr(model, name)!r}`"
        case _:
            return f"`{ast.unparse(value)}`"
