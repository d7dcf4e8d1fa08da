from __future__ import annotations

from typing import Any

import pytest

from evenflow.core.model import Param
from evenflow.core.params import check_schema, problem_of_value, resolve_params
from evenflow.errors import BadSetting, ParamError

SPECS = {"n": Param(default=3, schema={"type": "integer", "minimum": 1}), "name": Param(required=True, schema={"type": "string"})}


def test_given_values_win_over_defaults() -> None:
    assert resolve_params(SPECS, {"name": "x"}) == {"n": 3, "name": "x"}
    assert resolve_params(SPECS, {"name": "x", "n": 5}) == {"n": 5, "name": "x"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "The parameter 'name' has no default: give it a value. With the CLI, type: --param name=VALUE"),
        ({"name": "x", "m": 1}, "The DAG has no parameter 'm'. It has: n, name."),
        ({"name": "x", "n": 0}, "The parameter 'n' must be at least 1, not 0."),
        ({"name": 7}, "The parameter 'name' must be of type string, not 7."),
    ],
)
def test_what_does_not_fit_is_said(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParamError) as raised:
        resolve_params(SPECS, given)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer"}, [1, -1, 2.0], [1.5, True, "1", None]),
        ({"type": "number"}, [1, 1.5], [True, "1"]),
        ({"type": "boolean"}, [True, False], [0, 1, "true"]),
        ({"type": ["string", "null"]}, ["x", None], [1]),
        ({"type": "object"}, [{}], [[]]),
        ({"enum": [1, "a", None]}, [1, "a", None], [True, 2, "b"]),
        ({"const": 1}, [1], [True, 2]),
        ({"minimum": 1, "maximum": 3}, [1, 3, "no number"], [0, 4, float("nan")]),
        ({"minLength": 2, "maxLength": 3}, ["ab", "abc", 5], ["a", "abcd"]),
        ({"pattern": "^a+$"}, ["a", "aa"], ["b"]),
        ({"type": "array", "items": {"type": "integer"}}, [[], [1, 2]], [["x"], [1, "x"], "x"]),
        ({"title": "A number", "examples": [1]}, [1, "x"], []),
    ],
)
def test_schemas(schema: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    check_schema(schema, "here")
    assert [value for value in good if problem_of_value(value, schema)] == []
    assert [value for value in bad if not problem_of_value(value, schema)] == []


@pytest.mark.parametrize(
    ("schema", "part"),
    [
        ({"format": "date"}, "the keyword 'format' is not supported. Supported are type, enum, const,"),
        ({"type": "int"}, "type must be one of string, integer,"),
        ({"type": []}, "type must be one of string, integer,"),
        ({"type": [["string"]]}, "type must be one of string, integer,"),
        ({"minimum": "1"}, "minimum must be a number, not '1'"),
        ({"maxLength": -1}, "maxLength must be an integer of at least 0"),
        ({"enum": []}, "enum must be a list with at least one value"),
        ({"pattern": "("}, "pattern '(' is not a regular expression"),
        ({"items": "string"}, "items must be a schema"),
        ({"items": {"format": "date"}}, "here, items: the keyword 'format' is not supported"),
    ],
)
def test_a_schema_that_would_not_be_applied_is_refused(schema: dict[str, Any], part: str) -> None:
    with pytest.raises(BadSetting) as raised:
        check_schema(schema, "here")
    assert str(raised.value).startswith("here")
    assert part in str(raised.value)
