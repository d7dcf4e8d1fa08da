"""What ``evenflow`` exports, and the options of DAGs and tasks."""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import re
from types import ModuleType
from typing import Any, get_args, get_type_hints

import evenflow
from evenflow.core.model import DagSpec
from evenflow.sdk import options
from evenflow.sdk.nodes import NodesOfDag
from evenflow.sdk.setup_teardown import Markable
from scripts.reference.markdown import fields_of, prose, signature_of, split_arguments, table
from scripts.reference.spec import bounds_in_words

WIDTH = 100  # of a signature on one line

_WITHOUT_A_PAGE = (NodesOfDag, Markable)  # what authors inherit from these stands with those who inherit it
_SEEN_AS = {"AnyDag": "DAG", "TaskNode": "Task", "TaskT": "Task"}  # what an author has in the place of a base


def page() -> str:
    parts = [
        "# Authoring",
        "Everything that a DAG file imports from `evenflow`. Options: [of DAGs](#dag-options), [of tasks](#task-options).",
    ]
    parts += [_describe(name, getattr(evenflow, name)) for name in evenflow.__all__]
    parts += ["## DAG options", prose(options.DagOptions.__doc__ or ""), _options("DagOptions", DagSpec, options.Header)]
    parts += ["## Task options", prose(options.TaskOptions.__doc__ or ""), _options("TaskOptions", options.TaskSettings)]
    return "\n\n".join(parts)


def _options(name: str, *filled: Any) -> str:
    defaults = {each.name: each.default for record in filled for each in dataclasses.fields(record)}
    kinds = {each: kind for record in filled for each, kind in get_type_hints(record, include_extras=True).items()}
    table_of = getattr(options, name).__annotations__
    rows = []
    for field in fields_of(options, name):
        option = get_args(table_of[ast.unparse(field.target)])[1]
        match field.annotation:
            case ast.Subscript(slice=ast.Tuple(elts=[given, *_])):
                said = ast.unparse(given)
            case other:
                raise ValueError(f"{name}.{ast.unparse(field.target)} must be Annotated[...], not {ast.unparse(other)}.")
        filled_field = option.field or ast.unparse(field.target)
        within = option.wanted or ("" if option.read else bounds_in_words(kinds[filled_field]))
        default = _default(defaults.get(filled_field))
        rows.append((f"`{ast.unparse(field.target)}`", f"`{said}`", within, default, prose(option.meaning)))
    return table(("option", "type", "bounds", "default", "meaning"), rows)


def _default(value: Any) -> str:
    return "none" if value in (None, "", ()) or value is dataclasses.MISSING else f"`{value}`"


def _describe(name: str, value: Any) -> str:
    parts = [f"### `{name}`"]
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return "\n\n".join([*parts, "One of " + ", ".join(f"`{m.name if issubclass(value, int) else m}`" for m in value) + "."])
    if isinstance(value, ModuleType):
        functions = [
            f"`{each}{signature_of(member)}`" for each, member in vars(value).items() if inspect.getmodule(member) is value
        ]
        return "\n\n".join([*parts, prose(inspect.getdoc(value) or ""), "It has " + ", ".join(functions) + "."])
    if not (isinstance(value, type) and issubclass(value, (dict, Exception))):
        parts.append(
            f"```text\n{_broken(name, _signature(vars(value).get('__init__', value) if isinstance(value, type) else value))}\n```"
        )
    parts.append(prose(inspect.getdoc(value) or ""))
    if isinstance(value, type):
        told = {each for base in value.__mro__[1:] if base.__name__ in evenflow.__all__ for each in base.__mro__}
        shown = [value, *(each for each in _WITHOUT_A_PAGE if issubclass(value, each) and each not in told)]
        members = {name: member for each in shown for name, member in vars(each).items()}
        methods = [(name, member) for name, member in members.items() if not name.startswith("_") and inspect.isfunction(member)]
        parts += [
            f"`.{method}{_signature(member)}`\n: {prose(inspect.getdoc(member) or '')}"
            for method, member in methods
            if member.__doc__
        ]
    return "\n\n".join(part for part in parts if part)


def _signature(value: Any) -> str:
    return re.sub(r"\b\w+\b", lambda name: _SEEN_AS.get(name[0], name[0]), signature_of(value))


def _one_line(described: Any) -> str:
    return " ".join(prose(inspect.getdoc(described) or "").split())


def _broken(name: str, signature: str) -> str:
    """The signature, one parameter a line when it is long."""
    if len(name + signature) <= WIDTH:
        return name + signature
    arguments, _, answer = signature[1:].rpartition(")")
    return f"{name}(\n" + "".join(f"    {argument},\n" for argument in split_arguments(arguments)) + f"){answer}"
