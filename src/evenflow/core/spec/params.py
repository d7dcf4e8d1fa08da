"""Run parameters: every one gets a value. The edges, where people give values, check it against its JSON Schema
(:mod:`evenflow.sdk.param_schema`); defaults were checked when the DAG was defined.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenflow.core.likeness import did_you_mean
from evenflow.core.model import RunParamSpec
from evenflow.errors import ParamError


def resolve_params(specs: Mapping[str, RunParamSpec], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the value of every parameter: the given one, else its default. Raises :class:`ParamError` if one is unknown or
    missing.

    A DAG without parameters takes every value, as in Airflow: many DAGs read ``dag_run.conf`` and declare nothing.
    """
    if not specs:
        return dict(given)
    for name in given:
        if name not in specs:
            raise ParamError(
                f"The DAG has no parameter {name!r}.", hint=f"{did_you_mean(name, specs)} It has: {', '.join(sorted(specs))}."
            )
    values: dict[str, Any] = {}
    for name, spec in specs.items():
        if name in given:
            values[name] = given[name]
        elif spec.required:
            raise ParamError(
                f"The parameter {name!r} has no default: give it a value.", hint=f"With the CLI, type: --param {name}=VALUE"
            )
        else:
            values[name] = spec.default
    return values
