"""Run parameters: every one gets a value. Whether it fits its JSON Schema is checked at the edges, where people give values
(:mod:`evenflow.sdk.param_schema`); a default was checked when the DAG was defined.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenflow.core.likeness import did_you_mean
from evenflow.core.model import RunParamSpec
from evenflow.errors import ParamError


def resolve_params(specs: Mapping[str, RunParamSpec], given: Mapping[str, Any]) -> dict[str, Any]:
    """The value of every parameter: as given, else its default. Raises :class:`ParamError` for one that is unknown or missing.

    A DAG that declares none takes whatever is given, as Airflow does: many read ``dag_run.conf`` and declare nothing.
    """
    if not specs:
        return dict(given)
    for name in given:
        if name not in specs:
            raise ParamError(f"The DAG has no parameter {name!r}.{did_you_mean(name, specs)} It has: {', '.join(sorted(specs))}.")
    values: dict[str, Any] = {}
    for name, spec in specs.items():
        if name in given:
            values[name] = given[name]
        elif spec.required:
            raise ParamError(f"The parameter {name!r} has no default: give it a value. With the CLI, type: --param {name}=VALUE")
        else:
            values[name] = spec.default
    return values
