"""Watchers of assets: each becomes a DAG of one task, which waits for its trigger while a DAG waits for the asset."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import timedelta
from typing import Any, NoReturn

from airflow.sdk import DAG, Asset, AssetAll, AssetAny, BaseOperator
from airflow.sdk.definitions.timetables.simple import ContinuousTimetable
from airflow.sdk.serde import serialize
from airflow.triggers.base import BaseEventTrigger, BaseTrigger, TriggerEvent

from evenflow.core.deferral import AIRFLOW_WATCH
from evenflow.errors import DagError

_RETRIES = 1_000  # a watcher is tried again and again: after a day or a week its trigger may work
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=10), timedelta(minutes=10)
_WEIGHT = 10_000  # it starts before other tasks, and waits in no slot
_NAME_CHARS = 100  # of the watcher, in the id of its DAG
_HASH_CHARS = 12


class WatchTimetable(ContinuousTimetable):  # type: ignore[misc]
    """Says which asset a DAG watches. Of the DAGs with one ``key``, each of a file, one at a time does."""

    def __init__(self, asset: str, key: str) -> None:
        self.asset, self.key = asset, key


class Watched(BaseTrigger):  # type: ignore[misc]
    """Stands for the trigger of a watcher where its task defers; a triggerer makes ``AirflowWatch`` of it."""

    def __init__(self, trigger: BaseEventTrigger) -> None:
        super().__init__()
        self._trigger = trigger

    def serialize(self) -> tuple[str, dict[str, Any]]:
        classpath, arguments = self._trigger.serialize()
        return AIRFLOW_WATCH, {"classpath": classpath, "arguments": arguments}

    def run(self) -> AsyncIterator[TriggerEvent]:
        raise NotImplementedError


class AssetWatch(BaseOperator):  # type: ignore[misc]
    """Defers to the trigger of a watcher, and only ends from outside."""

    def __init__(self, *, watcher: Any, **options: Any) -> None:
        super().__init__(**options)
        self._watcher = watcher

    def execute(self, context: Any) -> NoReturn:
        self.defer(trigger=Watched(self._watcher.trigger), method_name="execute")
        raise AssertionError("a task that has deferred continues here")


def watches_of(dags: Iterable[Any], file: str) -> list[Any]:
    """Returns a DAG for each watcher of the assets that these DAGs of a file name."""
    found: dict[str, Any] = {}
    for dag in dags:
        for asset, watcher in _watchers_of(dag):
            made = _watch(asset, watcher, file)
            found.setdefault(made.dag_id, made)
    return list(found.values())


def _watchers_of(dag: Any) -> Iterator[tuple[Asset, Any]]:
    named = [each for task in dag.task_dict.values() for each in (*task.outlets, *task.inlets)]
    for asset in _assets_in([*named, getattr(dag.timetable, "asset_condition", None)]):
        for watcher in asset.watchers:
            _check(asset, watcher, dag)
            yield asset, watcher


def _assets_in(named: Iterable[Any]) -> Iterator[Asset]:
    for each in named:
        if isinstance(each, AssetAll | AssetAny):
            yield from _assets_in(each.objects)
        elif isinstance(each, Asset):
            yield each


def _check(asset: Asset, watcher: Any, dag: Any) -> None:
    """Raises :class:`DagError` for a trigger that only Airflow's own triggerer can run."""
    makes = type(watcher.trigger).create_shared_stream_producer
    if getattr(makes, "__func__", makes) is not BaseEventTrigger.create_shared_stream_producer.__func__:
        what = f"DAG {dag.dag_id!r}, watcher {watcher.name!r} of asset {asset.name!r}"
        raise DagError(
            f"{what}: Evenflow has no create_shared_stream_producer() of triggers. Give {type(watcher.trigger).__name__} "
            "open_shared_stream() or run(), and let it confirm what it has taken."
        )


def _watch(asset: Asset, watcher: Any, file: str) -> Any:
    classpath, arguments = watcher.trigger.serialize()
    key = _hash_of(asset.name, watcher.name, classpath, json.dumps(serialize(arguments), sort_keys=True, default=str))
    name = re.sub(r"[^\w.-]", "_", watcher.name)[:_NAME_CHARS]
    dag = DAG(
        f"watch.{name}.{_hash_of(key, file)}",
        schedule=WatchTimetable(asset.name, key),
        max_active_runs=1,
        description=f"Watches asset {asset.name} by {classpath}.",
        dag_display_name=f"{watcher.name} of {asset.name}",
        is_paused_upon_creation=False,
        tags={"watcher"},
    )
    AssetWatch(
        task_id="watch",
        watcher=watcher,
        dag=dag,
        outlets=[asset],
        priority_weight=_WEIGHT,
        retries=_RETRIES,
        retry_delay=_FIRST_PAUSE,
        retry_exponential_backoff=True,
        max_retry_delay=_LONGEST_PAUSE,
    )
    return dag


def _hash_of(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_HASH_CHARS]
