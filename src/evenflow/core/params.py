"""Run parameters: their schemas are checked when the DAG is defined, their values when a run is triggered.

The schemas are a subset of JSON Schema, the part that fits a form: ``type`` (one name or a list, ``null`` among them), ``enum``,
``const``, ``minimum``, ``maximum``, ``minLength``, ``maxLength``, ``pattern`` and ``items``; ``title`` and ``examples`` are for
people. Any other keyword is refused when the DAG is defined, because a rule that is silently not applied is worse than none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from evenflow.core.model import Param
from evenflow.errors import BadSetting, ParamError

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_NUMBERS, _LENGTHS = ("minimum", "maximum"), ("minLength", "maxLength")
KEYWORDS = ("type", "enum", "const", *_NUMBERS, *_LENGTHS, "pattern", "items", "title", "examples")


def check_schema(schema: Mapping[str, Any], where: str) -> None:
    """Raises :class:`BadSetting` for a schema with a keyword or a value that is not supported; ``where`` begins the message."""
    for keyword, value in schema.items():
        problem = _problem_of_keyword(keyword, value, where)
        if problem:
            raise BadSetting(f"{where}: {problem}")


def _problem_of_keyword(keyword: str, value: Any, where: str) -> str | None:
    match keyword:
        case "type":
            names = value if isinstance(value, list) else [value]
            if not names or any(not isinstance(name, str) or name not in _TYPES for name in names):
                return f"type must be one of {', '.join(_TYPES)}, or a list of these, not {value!r}."
        case "minimum" | "maximum":
            if not _is_a(value, "number"):
                return f"{keyword} must be a number, not {value!r}."
        case "minLength" | "maxLength":
            if not _is_a(value, "integer") or value < 0:
                return f"{keyword} must be an integer of at least 0, not {value!r}."
        case "enum" | "examples":
            if not isinstance(value, list) or not value:
                return f"{keyword} must be a list with at least one value, not {value!r}."
        case "pattern":
            try:
                re.compile(value)
            except (re.error, TypeError) as error:
                return f"pattern {value!r} is not a regular expression: {error}."
        case "items":
            if not isinstance(value, dict):
                return f"items must be a schema, e.g. {{'type': 'string'}}, not {value!r}."
            check_schema(value, f"{where}, items")
        case "const" | "title":
            pass
        case _:
            return f"the keyword {keyword!r} is not supported. Supported are {', '.join(KEYWORDS)}; check anything else in a task."
    return None


def resolve_params(specs: Mapping[str, Param], given: Mapping[str, Any]) -> dict[str, Any]:
    """The value of every parameter: as given, else its default. Raises :class:`ParamError` for the first that is unknown, missing
    or wrong.
    """
    for name in given:
        if name not in specs:
            known = f"It has: {', '.join(sorted(specs))}." if specs else "It has none."
            raise ParamError(f"The DAG has no parameter {name!r}. {known}")
    values: dict[str, Any] = {}
    for name, spec in specs.items():
        if name in given:
            values[name] = given[name]
        elif spec.required:
            raise ParamError(f"The parameter {name!r} has no default: give it a value. With the CLI, type: --param {name}=VALUE")
        else:
            values[name] = spec.default
        problem = problem_of_value(values[name], spec.schema)
        if problem:
            raise ParamError(f"The parameter {name!r} {problem}")
    return values


def problem_of_value(value: Any, schema: Mapping[str, Any]) -> str | None:
    """What is wrong with ``value``, as the end of a sentence that names it; None when it fits."""
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(_is_a(value, name) for name in names):
            return f"must be of type {' or '.join(names)}, not {_shown(value)}."
    if "const" in schema and not _same(value, schema["const"]):
        return f"must be {_shown(schema['const'])}, not {_shown(value)}."
    if "enum" in schema and not any(_same(value, choice) for choice in schema["enum"]):
        return f"must be one of {', '.join(_shown(choice) for choice in schema['enum'])}, not {_shown(value)}."
    if _is_a(value, "number"):
        return _problem_of_number(value, schema)
    if isinstance(value, str):
        return _problem_of_text(value, schema)
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            problem = problem_of_value(item, schema["items"])
            if problem:
                return f"has an item, number {index}, that {problem}"
    return None


def _problem_of_number(value: float, schema: Mapping[str, Any]) -> str | None:
    # Negated, so that NaN, which compares false with everything, fits no bound.
    if "minimum" in schema and not value >= schema["minimum"]:
        return f"must be at least {schema['minimum']}, not {_shown(value)}."
    if "maximum" in schema and not value <= schema["maximum"]:
        return f"must be at most {schema['maximum']}, not {_shown(value)}."
    return None


def _problem_of_text(value: str, schema: Mapping[str, Any]) -> str | None:
    if "minLength" in schema and len(value) < schema["minLength"]:
        return f"must have at least {schema['minLength']} characters, not {len(value)}."
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        return f"must have at most {schema['maxLength']} characters, not {len(value)}."
    if "pattern" in schema and not re.search(schema["pattern"], value):
        return f"must match the regular expression {schema['pattern']}, which {_shown(value)} does not."
    return None


def _is_a(value: Any, name: str) -> bool:
    """JSON's idea of types: true is no number, and 1.0 is an integer."""
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[name])


def _same(value: Any, other: Any) -> bool:
    return bool(value == other) and isinstance(value, bool) is isinstance(other, bool)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 80 else text[:77] + "..."
