"""Run parameters against their JSON Schema (draft 2020-12, with its formats).

The library is imported when the first schema is met: most DAGs have none. A ``$ref`` reaches within its schema only: nothing is
ever fetched.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from evenflow.core.model import Param
from evenflow.core.params import resolve_params
from evenflow.errors import BadSetting, ParamError

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.exceptions import ValidationError

MAX_SHOWN = 80  # characters of a value in an error


def check_schema(schema: Mapping[str, Any], where: str) -> None:
    """Raises :class:`BadSetting`, its message beginning with ``where``, for what is no JSON Schema."""
    if not schema:
        return
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    unknown = next((name for name in schema if name not in _KEYWORDS and not name.startswith(("$", "x-"))), None)
    if unknown is not None:
        raise BadSetting(f"{where}: JSON Schema has no keyword {unknown!r}, so it would not be applied. {_close(unknown)}".rstrip())
    try:
        Draft202012Validator.check_schema(dict(schema))
    except SchemaError as error:
        place = "".join(f"{part}, " for part in error.absolute_path)
        raise BadSetting(f"{where}: {place}{error.message}. This is no JSON Schema.") from None


def checked_params(specs: Mapping[str, Param], given: Mapping[str, Any]) -> dict[str, Any]:
    """The value of every parameter. Raises :class:`ParamError` for the first that is unknown, missing, or does not fit."""
    values = resolve_params(specs, given)
    for name, spec in specs.items():
        problem = problem_of_value(values[name], spec.schema)
        if problem:
            raise ParamError(f"The parameter {name!r} {problem}{_example(name, spec)}")
    return values


def problem_of_value(value: Any, schema: Mapping[str, Any]) -> str | None:
    """What is wrong with ``value``, as the end of a sentence that names it; None when it fits."""
    if not schema:
        return None
    from jsonschema.exceptions import best_match
    from referencing.exceptions import Unresolvable

    try:
        error = best_match(_validator(json.dumps(schema, sort_keys=True)).iter_errors(value))
    except Unresolvable as unresolvable:
        return f"cannot be checked: its schema refers to {unresolvable.ref!r}, which is not in it."
    if error is None:
        return None
    place = "".join(f"[{part!r}]" for part in error.absolute_path)
    return f"{f'at {place} ' if place else ''}{_say(error)}."


@lru_cache(maxsize=1024)
def _validator(schema: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator
    from referencing import Registry

    return Draft202012Validator(json.loads(schema), format_checker=_formats(), registry=Registry())


@lru_cache(maxsize=1)
def _formats() -> FormatChecker:
    from jsonschema import Draft202012Validator, FormatChecker

    checker = FormatChecker(())
    checker.checkers = dict(Draft202012Validator.FORMAT_CHECKER.checkers)

    @checker.checks("date-time", raises=ValueError)
    def _is_date_time(value: object) -> bool:
        return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None

    return checker


def _say(error: ValidationError) -> str:
    rule: Any = error.validator_value
    shown = _shown(error.instance)
    match error.validator:
        case "type":
            return f"must be of type {' or '.join([rule] if isinstance(rule, str) else rule)}, not {shown}"
        case "enum":
            return f"must be one of {', '.join(map(_shown, rule))}, not {shown}"
        case "const":
            return f"must be {_shown(rule)}, not {shown}"
        case "minimum":
            return f"must be at least {rule}, not {shown}"
        case "maximum":
            return f"must be at most {rule}, not {shown}"
        case "pattern":
            return f"must match the regular expression {rule}, which {shown} does not"
        case "format":
            return f"must be a {rule}, which {shown} is not"
        case _:
            return f"does not fit: {error.message}"


def _example(name: str, spec: Param) -> str:
    """What to type instead, where the schema shows it."""
    for candidate in (*spec.schema.get("examples", ()), *spec.schema.get("enum", ()), spec.default, spec.schema.get("minimum")):
        if candidate is not None and problem_of_value(candidate, spec.schema) is None:
            text = candidate if isinstance(candidate, str) else json.dumps(candidate)
            return f" Type for example: --param {name}={text}"
    return ""


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."


def _close(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, _KEYWORDS, n=1)
    return f"Did you mean {close[0]!r}?" if close else "For notes of your own begin it with 'x-'."


# The vocabulary, and what Airflow's forms know beside it.
_KEYWORDS = frozenset(
    {
        "type",
        "enum",
        "const",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "items",
        "prefixItems",
        "contains",
        "minContains",
        "maxContains",
        "minItems",
        "maxItems",
        "uniqueItems",
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "propertyNames",
        "minProperties",
        "maxProperties",
        "dependentRequired",
        "dependentSchemas",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "then",
        "else",
        "title",
        "description",
        "examples",
        "default",
        "deprecated",
        "readOnly",
        "writeOnly",
        "contentEncoding",
        "contentMediaType",
        "unevaluatedItems",
        "unevaluatedProperties",
        "section",
        "description_md",
        "custom_html_form",
        "values_display",
    }
)
