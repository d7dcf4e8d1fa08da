"""Run parameters for authors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evenflow.core import model
from evenflow.errors import BadSetting
from evenflow.sdk.param_schema import check_schema, problem_of_value
from evenflow.sdk.references import Reference

_MISSING: Any = object()


class Param:
    """A parameter of a DAG's runs: its default, its purpose, and a JSON Schema for its values as keyword arguments.

    ``Param(5, type="integer", minimum=1)``; a parameter without a default must be given when a run is triggered.
    """

    def __init__(self, default: Any = _MISSING, description: str = "", **schema: Any) -> None:
        self.default = default
        self.description = description
        self.schema = schema

    def to_spec(self, where: str) -> model.RunParamSpec:
        """Raises :class:`BadSetting`, with a message that begins with ``where``, for a schema or a default that makes no sense."""
        check_schema(self.schema, where)
        if self.default is _MISSING:
            return model.RunParamSpec(schema=self.schema, required=True, description=self.description)
        try:
            default, schema = json.loads(json.dumps([self.default, self.schema], allow_nan=False))
        except (TypeError, ValueError) as error:
            raise BadSetting(
                f"{where}: the default {self.default!r} is no JSON value: {error}. Give a string and convert it in the task."
            ) from None
        problem = problem_of_value(default, schema)
        if problem:
            raise BadSetting(f"{where}: the default {problem}")
        return model.RunParamSpec(default=default, schema=schema, description=self.description)


class ParamRef(Reference):
    """The value of a parameter in the run: ``dag.param("name")``, or an argument of a function with ``@dag``."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<param {self.name!r}>"


class RunParams(dict[str, Any]):
    """The parameters of a run, read as ``params["name"]`` or ``params.name``."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(_unknown(name, self)) from None

    def __missing__(self, name: str) -> Any:
        raise KeyError(_unknown(name, self))


def params_to_spec(params: Mapping[str, Any], where: str) -> dict[str, model.RunParamSpec]:
    """A plain value is a parameter with that default and no rule."""
    specs = {}
    for name, value in params.items():
        if not isinstance(name, str) or not name:
            raise BadSetting(f"{where}: the name of a parameter must be a string, not {name!r}.")
        specs[name] = (value if isinstance(value, Param) else Param(value)).to_spec(f"{where}, parameter {name!r}")
    return specs


def _unknown(name: str, params: Mapping[str, Any]) -> str:
    return f"The DAG has no parameter {name!r}; it has: {', '.join(sorted(params)) or 'none'}. Declare it in params of the DAG."
