"""Inputs of mappings: only the length matters here, values are the SDK's."""

from __future__ import annotations

from collections.abc import Mapping as Dict
from collections.abc import Sequence
from typing import Any

from airflow.sdk.definitions._internal.expandinput import DictOfListsExpandInput, ListOfDictsExpandInput
from airflow.sdk.definitions._internal.types import ArgNotSet
from airflow.sdk.definitions.xcom_arg import ConcatXComArg, MapXComArg, PlainXComArg, ZipXComArg

from evenflow.airflow.loading.refusals import DagRefusals
from evenflow.core.model import MapInput, Mapping


def mapping_of(expand_input: Any, index_of: Dict[str, int], refusals: DagRefusals, of: str) -> Mapping:
    """``index_of`` maps a task id to its task index."""
    match expand_input:
        case DictOfListsExpandInput():
            values = expand_input.value
        case ListOfDictsExpandInput():
            values = {"": expand_input.value}
        case _:
            refusals.add(f"mapping of type {type(expand_input).__name__}", "Map by expand() or expand_kwargs().", of)
            values = {}
    return Mapping(inputs=tuple(_input(name, value, index_of, refusals, of) for name, value in values.items()))


def _input(name: str, value: Any, index_of: Dict[str, int], refusals: DagRefusals, of: str) -> MapInput:
    match value:
        case PlainXComArg():
            return MapInput(name=name, task=index_of[value.operator.task_id], key=value.key)
        case MapXComArg():
            return _input(name, value.arg, index_of, refusals, of)
        case ZipXComArg() | ConcatXComArg():
            parts = tuple(_input("", arg, index_of, refusals, of) for arg in value.args)
            return MapInput(name=name, combine=_combination(value), parts=parts)
        case Sequence() | Dict():
            return MapInput(name=name, length=len(value))
        case _:
            refusals.add(f"mapping over {type(value).__name__}", "Map over a list, a dict or the result of a task.", of)
            return MapInput(name=name, length=0)


def _combination(value: ZipXComArg | ConcatXComArg) -> str:
    if isinstance(value, ConcatXComArg):
        return "concat"
    return "zip" if isinstance(value.fillvalue, ArgNotSet) else "zip_longest"
