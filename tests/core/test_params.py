"""Run parameters: defaults, and values that do not fit their JSON Schema."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.core.model import RunParamSpec
from evenflow.errors import BadSetting, ParamError
from evenflow.sdk import params
from evenflow.sdk.param_schema import check_schema, checked_params, problem_of_value
from tests.watchdog import within

SPECS = {
    "n": RunParamSpec(default=3, schema={"type": "integer", "minimum": 1}),
    "name": RunParamSpec(required=True, schema={"type": "string"}),
}


def test_given_values_win_over_defaults() -> None:
    assert checked_params(SPECS, {"name": "x"}) == {"n": 3, "name": "x"}
    assert checked_params(SPECS, {"name": "x", "n": 5}) == {"n": 5, "name": "x"}


def test_a_dag_that_declares_none_takes_what_is_given() -> None:
    """It reads ``dag_run.conf``."""
    assert checked_params({}, {"day": "2026-03-01"}) == {"day": "2026-03-01"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "The parameter 'name' has no default: give it a value. With the CLI, type: --param name=VALUE"),
        ({"name": "x", "m": 1}, "The DAG has no parameter 'm'. It has: n, name."),
        ({"name": "x", "n": 0}, "The parameter 'n' must be at least 1, not 0. Type for example: --param n=3"),
        ({"name": 1.4}, "The parameter 'name' must be of type string, not 1.4. Type for example: --param 'name=\"1.4\"'"),
        ({"name": [7]}, "The parameter 'name' must be of type string, not [7]."),
    ],
)
def test_what_does_not_fit_is_said(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParamError) as raised:
        checked_params(SPECS, given)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer"}, [1, -1, 2.0], [1.5, True, "1", None]),
        ({"type": "boolean"}, [True, False], [0, 1, "true"]),
        ({"type": ["string", "null"]}, ["x", None], [1]),
        ({"enum": [1, "a", None]}, [1, "a", None], [True, 2, "b"]),
        ({"minimum": 1, "exclusiveMaximum": 3}, [1, 2, "no number"], [0, 3]),
        ({"type": "string", "format": "date"}, ["2026-02-28"], ["2026-02-30", "tomorrow"]),
        ({"type": "string", "format": "date-time"}, ["2026-02-28T01:02:03+00:00"], ["2026-02-28T01:02:03", "tomorrow"]),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 1}, [[1, 2]], [[], ["x"], "x"]),
        ({"anyOf": [{"type": "integer"}, {"const": "all"}]}, [1, "all"], ["some"]),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, [{"a": "x"}], [{}, {"a": 1}]),
        ({"$defs": {"n": {"type": "integer"}}, "$ref": "#/$defs/n"}, [1], ["x"]),
        ({"title": "A number", "examples": [1]}, [1, "x"], []),
        ({}, [1, None], []),
    ],
)
def test_schemas(schema: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    check_schema(schema, "here")
    assert [value for value in good if problem_of_value(value, schema)] == []
    assert [value for value in bad if not problem_of_value(value, schema)] == []


def test_what_is_wrong_inside_a_value_is_placed() -> None:
    schema = {"type": "array", "items": {"type": "object", "properties": {"n": {"maximum": 2}}}}
    assert problem_of_value([{"n": 1}, {"n": 3}], schema) == "at [1]['n'] must be at most 2, not 3."


def test_of_alternatives_each_is_said() -> None:
    schema = {"anyOf": [{"type": "integer"}, {"const": "all"}]}
    assert problem_of_value("some", schema) == 'must be of type integer, not "some", or must be "all", not "some".'
    both = problem_of_value(1, {"oneOf": [{"type": "integer"}, {"minimum": 0}]})
    assert both is not None
    assert "more than one" in both


@pytest.mark.parametrize("value", [{1: 2}, object(), "\ud800", {"a": {1, 2}}])
def test_what_is_no_json_is_said(value: Any) -> None:
    assert (problem_of_value(value, {"type": "string"}) or "").startswith("is no JSON: ")


LONG = "a" * 100_000 + "!"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": "^(a+)+$"}, LONG),
        ({"pattern": "^(a|a)*$"}, LONG),
        ({"pattern": "^([a-z]+)*$"}, LONG),
        ({"patternProperties": {"^(a+)+$": {"type": "integer"}}, "additionalProperties": False}, {LONG: 1}),
        ({"propertyNames": {"pattern": "^(a*)*$"}}, {LONG: 1}),
    ],
)
def test_no_pattern_takes_for_ever(schema: dict[str, Any], value: Any) -> None:
    """R-SE2: whatever the author writes, and whoever gives the value."""
    check_schema(schema, "here")
    with within(5.0):
        assert problem_of_value(value, schema)


@pytest.mark.parametrize("pattern", ["(?=a)b", "(?!a)b", "(?<=a)b", "(?<!a)b", r"(a)\1", r"a\Z", "(?:a{1000}){1000}"])
def test_patterns_that_may_take_for_ever_are_refused(pattern: str) -> None:
    """R-SE2: when the DAG is made, with what to write."""
    for schema in ({"pattern": pattern}, {"properties": {"a": {"pattern": pattern}}}, {"patternProperties": {pattern: {}}}):
        with pytest.raises(
            BadSetting, match=r"^here: .*no pattern that can be matched in linear time.* Write it without look-ahead"
        ):
            check_schema(schema, "here")
        with pytest.raises(BadSetting, match="linear time"):
            params.Param("a", **schema).to_spec("here")


def test_nothing_is_fetched() -> None:
    problem = problem_of_value(1, {"$ref": "http://127.0.0.1:9/schema.json"})
    assert problem == "cannot be checked: its schema refers to 'http://127.0.0.1:9/schema.json', which is not in it."


@pytest.mark.parametrize(
    ("schema", "part"),
    [
        ({"minimun": 1}, "JSON Schema has no keyword 'minimun', so it would not be applied. Did you mean 'minimum'?"),
        (
            {"type": "int"},
            """type, "int" is not valid under any of the schemas listed in the 'anyOf' keyword. This is no JSON Schema.""",
        ),
        ({"minimum": "1"}, 'minimum, "1" is not of type "number". This is no JSON Schema.'),
        (
            {"pattern": "("},
            "pattern, '(' is not a 'regex': missing ), unterminated subpattern at position 0. This is no JSON Schema.",
        ),
        ({"items": "string"}, 'items, "string" is not of types "boolean", "object". This is no JSON Schema.'),
        ({"$ref": "http://127.0.0.1:9/schema.json"}, "refers to 'http://127.0.0.1:9/schema.json', which is not in it."),
        ({"$ref": "#/$defs/n"}, "refers to '/$defs/n', which is not in it."),
    ],
)
def test_what_is_no_schema_is_refused(schema: dict[str, Any], part: str) -> None:
    with pytest.raises(BadSetting) as raised:
        check_schema(schema, "here")
    assert str(raised.value).startswith("here: ")
    assert part in str(raised.value)
