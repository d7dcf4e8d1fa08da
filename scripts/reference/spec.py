"""The serialised DAG."""

from __future__ import annotations

import dataclasses
import inspect
import re
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from evenflow.core import model
from evenflow.core.bounds import Bound
from evenflow.sdk.options import DagOptions, TaskOptions
from scripts.reference.markdown import prose, sentence, table, trailing_comments

_TYPES: dict[type, Any] = {  # and the options that fill them
    model.DagSpec: DagOptions,
    model.TaskSpec: TaskOptions,
    model.Mapping: None,
    model.MapInput: None,
    model.GroupSpec: None,
    model.RunParamSpec: None,
    model.Schedule: None,
    model.DeadlineSpec: None,
    model.RetryRuleSpec: None,
    model.AssetSpec: None,
}


def page() -> str:
    parts = ["# DagSpec", prose(model.__doc__ or ""), f"This is format {model.FORMAT}."]
    for described, options in _TYPES.items():
        docstring = inspect.getdoc(described) or ""
        parts.append(f"## {described.__name__}")
        if not docstring.startswith(f"{described.__name__}("):  # else the one that dataclass makes
            parts.append(prose(docstring))
        parts.append(table(("field", "type", "bounds", "default", "meaning"), _rows(described, options)))
    return "\n\n".join(parts)


def _rows(described: Any, options: Any) -> list[tuple[str, str, str, str, str]]:
    meanings = _meanings_of(options) if options else {}
    for record in described.__mro__[:-1]:
        comments = trailing_comments(model, record.__name__)
        meanings |= {name: sentence(comment) for name, comment in comments.items() if comment}
    kinds = get_type_hints(described, include_extras=True)
    rows = [
        (
            f"`{each.name}`",
            f"`{_type(kinds[each.name])}`",
            bounds_in_words(kinds[each.name]),
            _default(each),
            meanings.get(each.name, ""),
        )
        for each in dataclasses.fields(described)
    ]
    return sorted(rows, key=lambda row: row[3] != "required")


def _meanings_of(options: Any) -> dict[str, str]:
    """By field; of several options that fill one, the first one's."""
    found: dict[str, str] = {}
    for name, annotation in options.__annotations__.items():
        option = get_args(annotation)[1]
        found.setdefault(option.field or name, prose(option.meaning))
    return found


def _type(kind: Any) -> str:
    """Without bounds."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind is NoneType:
        return "None"
    if origin is Annotated:
        return _type(parts[0])
    if origin in (tuple, dict):
        return f"{origin.__name__}[{', '.join('...' if part is Ellipsis else _type(part) for part in parts)}]"
    if parts:
        return " | ".join(map(_type, parts))
    return re.sub(r"^.*\.", "", inspect.formatannotation(kind))


def bounds_in_words(kind: Any) -> str:
    """What a value of a type must be beside that; empty: anything."""
    if get_origin(kind) is Annotated:
        inner, *bounds = get_args(kind)
        said = [str(bound) for bound in bounds if isinstance(bound, Bound)]
        return "; ".join([*said, *([f"each {within}"] if (within := bounds_in_words(inner)) else [])])
    return "; ".join(filter(None, map(bounds_in_words, get_args(kind))))


def _default(each: dataclasses.Field[Any]) -> str:
    if each.default_factory is not dataclasses.MISSING:
        return f"`{each.default_factory.__name__}()`"
    if each.default is dataclasses.MISSING:
        return "required"
    return f"`{str(each.default) if isinstance(each.default, str) and each.default else each.default!r}`"
