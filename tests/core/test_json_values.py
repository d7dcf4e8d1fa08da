"""What can be kept as JSON, whoever reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from evenflow.core.json_values import flaw_of
from evenflow.core.limits import MAX_JSON_DEPTH
from tests.nesting import nested


class _Shown(BaseModel):
    value: Any


@pytest.mark.parametrize(
    ("value", "flaw"),
    [
        (nested(MAX_JSON_DEPTH), None),
        ({"a": [1, 2.5, None, True, "\u00e9", "\U0001f600", []]}, None),
        (nested(MAX_JSON_DEPTH + 1), "is nested more than 32 levels deep"),
        ({"a": {"b": [float("inf")]}}, "holds inf, which is no number of JSON"),
        ([float("nan")], "holds nan, which is no number of JSON"),
        ({"\ud800": 1}, "holds half a character (a lone surrogate)"),
        ("caf\udce9", "holds half a character (a lone surrogate)"),
    ],
)
def test_what_can_be_kept(value: Any, flaw: str | None) -> None:
    assert flaw_of(value) == flaw
    if flaw is None:
        assert json.loads(_Shown(value=value).model_dump_json())["value"] == value


def test_what_never_ends_is_looked_at_no_further() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert flaw_of(endless) == "is nested more than 32 levels deep"
