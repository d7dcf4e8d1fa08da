"""``@asset``: a function that makes data, as a DAG of one task."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, overload

from evenflow.sdk.assets import Asset
from evenflow.sdk.context import get_current_context
from evenflow.sdk.dag import DAG
from evenflow.sdk.operator import PythonOperator


@overload
def asset(function: Callable[..., Any], /) -> Asset: ...
@overload
def asset(
    function: None = None,
    /,
    *,
    schedule: Any = None,
    name: str | None = None,
    uri: str | None = None,
    group: str = "asset",
    extra: Mapping[str, Any] | None = None,
    dag_id: str | None = None,
    **options: Any,
) -> Callable[[Callable[..., Any]], Asset]: ...
def asset(function: Any = None, /, **options: Any) -> Any:
    """Makes a function an asset: a DAG with one task, both named after it. It runs on ``schedule``, and its success is an event.

    The function gets the asset as ``self``, the context as ``context``, and for each other parameter without a default the asset of
    that name, which is an inlet. Other options are those of the DAG.
    """
    if function is not None:
        return _define(function, {})
    return lambda decorated: _define(decorated, options)


def _define(function: Callable[..., Any], options: dict[str, Any]) -> Asset:
    name = options.pop("name", None) or function.__name__
    made = Asset(name, options.pop("uri", None), group=options.pop("group", "asset"), extra=options.pop("extra", None))
    given: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "self":
            given["self"] = made
        elif parameter.name != "context" and parameter.default is parameter.empty:
            given[parameter.name] = Asset(parameter.name)
    inlets = [value for key, value in given.items() if key != "self"]
    wants_context = "context" in inspect.signature(function).parameters

    def produce() -> Any:
        return function(**given, **({"context": get_current_context()} if wants_context else {}))

    options.setdefault("doc_md", inspect.getdoc(function) or "")
    with DAG(options.pop("dag_id", None) or name, **options):
        PythonOperator(task_id=name, python_callable=produce, outlets=[made], inlets=inlets)
    return made
