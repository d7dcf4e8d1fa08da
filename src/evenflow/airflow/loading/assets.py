"""Assets of Airflow, by which DAGs wait for each other, including those of Evenflow files: a name is one asset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airflow.sdk import Asset, AssetAlias, AssetAll, AssetAny
from airflow.sdk.definitions.asset import AssetNameRef, AssetUriRef

from evenflow.airflow.loading.refusals import DagRefusals
from evenflow.core.model import AssetSpec


def condition_of(asset: Any, refusals: DagRefusals) -> Any:
    """Returns the condition in the form of :mod:`evenflow.core.assets`."""
    match asset:
        case AssetAll() | AssetAny():
            parts = [condition_of(each, refusals) for each in asset.objects]
            return {"all" if isinstance(asset, AssetAll) else "any": parts}
        case AssetAlias():
            return {"alias": asset.name}
        case _:
            return name_of(asset, refusals)


def name_of(asset: Any, refusals: DagRefusals, of: str = "") -> str:
    match asset:
        case Asset() | AssetNameRef():
            return str(asset.name)
        case AssetUriRef():
            return str(asset.uri)  # the name of an asset without another name
        case _:
            refusals.add(f"inlet, outlet or schedule of type {type(asset).__name__}", "Name an Asset or an AssetAlias.", of)
            return ""


def specs_of(named: Iterable[Any], refusals: DagRefusals) -> tuple[AssetSpec, ...]:
    """Returns the specs of all assets that a DAG makes, reads or waits for, by name."""
    found = {}
    for asset in _leaves(named):
        if isinstance(asset, Asset):
            found[asset.name] = AssetSpec(name=asset.name, uri=asset.uri, group=asset.group, extra=dict(asset.extra))
        elif isinstance(asset, AssetNameRef | AssetUriRef):
            name = name_of(asset, refusals)
            found.setdefault(name, AssetSpec(name=name, uri=name))
    return tuple(spec for _, spec in sorted(found.items()))


def _leaves(named: Iterable[Any]) -> Iterable[Any]:
    for asset in named:
        if isinstance(asset, AssetAll | AssetAny):
            yield from _leaves(asset.objects)
        else:
            yield asset
