"""Run parameters as they are typed: ``--param name=value``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any

from cyclopts import Parameter

from evenflow.core.likeness import did_you_mean
from evenflow.errors import ParamError

Limit = Annotated[int, Parameter(help="How many at most.")]
Params = Annotated[
    list[str] | None,
    Parameter(
        name=["--param", "-p"],
        negative=(),
        help="A run parameter, NAME=VALUE; the value is JSON, or text if it is not. Repeatable.",
    ),
]


Conf = Annotated[
    str | None,
    Parameter(name=["--conf", "--params"], help="Run parameters as one JSON object; --param goes beside it."),
]


def parse_params(given: Iterable[str] | None, conf: str | None = None) -> dict[str, Any]:
    """Raises :class:`ParamError` for a ``conf`` that is not a JSON object, a text without ``=``, or a repeated parameter."""
    params: dict[str, Any] = _parse_conf(conf) if conf is not None else {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ParamError(f"--param {text!r} is not NAME=VALUE. Type for example: --param limit=10")
        if name in params:
            raise ParamError(f"--param {name} is given twice. Give each parameter once.")
        params[name] = json_or_text(value)
    return params


def refuse_undeclared(given: Iterable[str] | None, dag_id: str, declared: Iterable[str]) -> None:
    """Raises :class:`ParamError` for a ``--param`` that the DAG does not declare: it is misspelt, or nothing would read it."""
    known = list(declared)
    for text in given or ():
        name, _, value = text.partition("=")
        if name not in known:
            has = f"It has: {', '.join(known)}." if known else "It has none."
            conf = json.dumps({name: json_or_text(value)}, ensure_ascii=False)
            raise ParamError(
                f"The DAG {dag_id!r} has no parameter {name!r}.{did_you_mean(name, known)} {has} Declare it in the file: "
                f"params={{{name!r}: ...}}" + ("" if known else f", or, if tasks read dag_run.conf, type: --conf '{conf}'")
            )


def _parse_conf(text: str) -> dict[str, Any]:
    try:
        params = json.loads(text)
    except ValueError as error:
        raise ParamError(f"--conf is no JSON: {error}. Type for example: --conf '{{\"limit\": 10}}'") from None
    if not isinstance(params, dict):
        raise ParamError(f"--conf must be a JSON object, not {text}. Type for example: --conf '{{\"limit\": 10}}'")
    return params


def json_or_text(text: str) -> Any:
    """Returns the value of a typed text: JSON, or the text itself where it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text
