"""Checks run parameters against their JSON Schema (draft 2020-12, with its formats).

The library is imported with the first schema, because most DAGs have none. A ``$ref`` reaches only within its schema: nothing is
ever fetched. Patterns match in time linear in the value: a pattern that would need more is refused.
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from collections.abc import Mapping
from datetime import datetime, time
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from evenflow.core.likeness import meant_or
from evenflow.core.model import RunParamSpec
from evenflow.core.spec.params import resolve_params
from evenflow.errors import BadSetting, ParamError

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError

MAX_SHOWN = 80  # characters of a value in an error
MAX_ALTERNATIVES = 5  # of an anyOf, in an error


def check_schema(schema: Mapping[str, Any], where: str) -> None:
    """Raises :class:`BadSetting`, with a message that begins with ``where``, for an invalid JSON Schema."""
    if not schema:
        return
    unknown = next((name for name in schema if not is_keyword(name)), None)
    if unknown is not None:
        raise BadSetting(f"{where}: JSON Schema has no keyword {unknown!r}, so it would not be applied. {_close(unknown)}".rstrip())
    from jsonschema_rs import ValidationError

    try:
        _validator(_text(schema))
    except ValidationError as error:
        raise BadSetting(f"{where}: {_say_of_schema(error)}") from None
    except (ValueError, TypeError) as error:
        raise BadSetting(f"{where}: {str(error).rstrip('.')}. This is no JSON Schema.") from None


def is_keyword(name: str) -> bool:
    """Returns whether a keyword is JSON Schema's, Airflow's, or an author's own note."""
    return name in _KEYWORDS or name.startswith(("$", "x-"))


def checked_params(specs: Mapping[str, RunParamSpec], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the value of every parameter. Raises :class:`ParamError` for the first that is unknown, missing, or does not fit."""
    values = resolve_params(specs, given)
    for name, spec in specs.items():
        problem = problem_of_value(values[name], spec.schema)
        if problem:
            raise ParamError(f"The parameter {name!r} {problem}{_example(name, spec, values[name])}")
    return values


def problem_of_value(value: Any, schema: Mapping[str, Any]) -> str | None:
    """Returns what is wrong with ``value``, as the end of a sentence that names it; None when it fits."""
    if not schema:
        return None
    from jsonschema_rs import ValidationError

    try:
        validator = _validator(_text(schema))
    except ValidationError as error:
        return f"cannot be checked: {_say_of_schema(error)}"
    try:
        errors = list(validator.iter_errors(value))
    except (ValueError, TypeError) as error:  # values that JSON lacks, or nested too deeply
        return f"is no JSON: {str(error).rstrip('.')}."
    if not errors:
        return None
    first = min(errors, key=lambda one: (len(one.instance_path), one.kind.name in _ALTERNATIVES))
    place = "".join(f"[{part!r}]" for part in first.instance_path)
    return f"{f'at {place} ' if place else ''}{_say(first)}."


def _text(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, sort_keys=True)


@lru_cache(maxsize=1024)
def _validator(schema: str) -> Draft202012Validator:
    from jsonschema_rs import Draft202012Validator, RegexOptions

    return Draft202012Validator(
        json.loads(schema),
        formats={"date-time": _is_date_time, "time": _is_time},
        validate_formats=True,
        pattern_options=RegexOptions(),
        offline=True,
    )


def _is_date_time(value: str) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _is_time(value: str) -> bool:
    """Also without an offset, as forms give it."""
    try:
        time.fromisoformat(value)
    except ValueError:
        return False
    return True


def _say_of_schema(error: ValidationError) -> str:
    if error.kind.name == "$ref":
        _, _, rest = error.message.partition("'")
        reference, _, _ = rest.partition("'")
        return f"its schema refers to {reference!r}, which is not in it."
    place = "".join(f"{part}, " for part in error.instance_path)
    if error.kind.name == "format" and error.kind.value == "regex":
        return f"{place}{_say_of_pattern(str(error.instance))}"
    return f"{place}{error.message}. This is no JSON Schema."


def _say_of_pattern(pattern: str) -> str:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"{pattern!r} is not a 'regex': {error}. This is no JSON Schema."
    return (
        f"{_shown(pattern)} is no pattern that can be matched in linear time, so it could hang whoever checks a value. Write it "
        "without look-ahead and look-behind ((?=, (?!, (?<=, (?<!), back references (\\1), \\Z (write $) and large counts."
    )


_ALTERNATIVES = ("anyOf", "oneOf")


def _say(error: ValidationError) -> str:
    rule: Any = error.kind.value
    shown = _shown(error.instance)
    match error.kind.name:
        case "type":
            return f"must be of type {' or '.join(rule)}, not {shown}"
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
        case "anyOf" | "oneOf" if any(rule[:1]) and not _fits_several(error):
            said = [_say(alternative[0]) for alternative in rule if alternative]
            return ", or ".join(said[:MAX_ALTERNATIVES]) + (", or ..." if len(said) > MAX_ALTERNATIVES else "")
        case _:
            return f"does not fit: {error.message}"


def _fits_several(error: ValidationError) -> bool:
    """Returns whether a value fits more than the one alternative that it may."""
    return any(not alternative for alternative in error.kind.value)


def _example(name: str, spec: RunParamSpec, given: Any) -> str:
    """Returns a sentence with a valid value to type, if there is one: what was given as text, or what the schema shows."""
    as_text = (json.dumps(given),) if isinstance(given, int | float) else ()
    shown = (*spec.schema.get("examples", ()), *spec.schema.get("enum", ()), spec.default, spec.schema.get("minimum"))
    for candidate in (*as_text, *shown):
        if candidate not in (None, "") and problem_of_value(candidate, spec.schema) is None:
            return f" Type for example: --param {shlex.quote(f'{name}={_typed(candidate)}')}"
    return ""


def _typed(value: Any) -> str:
    """Returns what the command line reads as this value: JSON, or text where it is not JSON."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            json.loads(value)
            return json.dumps(value)
        return value
    return json.dumps(value)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."


def _close(name: str) -> str:
    return meant_or(name, _KEYWORDS, "For notes of your own begin it with 'x-'.")


# The vocabulary, and the keywords of Airflow's forms beside it.
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
