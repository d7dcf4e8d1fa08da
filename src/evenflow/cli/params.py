"""Run parameters as they are typed: ``--param name=value``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any

from cyclopts import Parameter

from evenflow.errors import ParamError

Params = Annotated[
    list[str] | None,
    Parameter(
        name=["--param", "-p"],
        negative=(),
        help="A run parameter, NAME=VALUE; the value is JSON, or text if it is not. Repeatable.",
    ),
]


def parse_params(given: Iterable[str] | None) -> dict[str, Any]:
    """Raises :class:`ParamError` for what has no ``=``, or names a parameter twice."""
    params: dict[str, Any] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ParamError(f"--param {text!r} is not NAME=VALUE. Type for example: --param limit=10")
        if name in params:
            raise ParamError(f"--param {name} is given twice. Give each parameter once.")
        params[name] = json_or_text(value)
    return params


def json_or_text(text: str) -> Any:
    """A value as it is typed: JSON, or the text itself where that is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text
