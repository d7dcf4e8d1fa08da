"""Kept values for tasks of the Task Execution API: their own over tries, those of assets over runs, and the events of assets
that they read.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from evenflow.contracts.airflow.answers import DONE, ExecutionAnswer, found, missing
from evenflow.contracts.airflow.of_try import AirflowTry

_GROUP = "asset"
_OF_ASSETS = ("name", "uri", "group", "extra")


class TaskStateStore:
    """Works like ``ti.once`` of Evenflow's tasks, except that values may be overwritten."""

    def __init__(self, of_try: AirflowTry) -> None:
        self._of_try = of_try

    def get(self, body: Any, *, key: str, **path: Any) -> ExecutionAnswer:
        kept = self._of_try.ask("once", name=key).get("kept")
        if kept is None or _is_over(kept["value"]["until"]):
            return missing(f"The task keeps nothing as {key!r}.")
        return found({"value": kept["value"]["value"]})

    def put(self, body: Any, *, key: str, **path: Any) -> ExecutionAnswer:
        kept = {"value": {"value": body["value"], "until": body.get("expires_at")}}
        self._of_try.ask("once", name=key)  # a value must be asked for before it can be kept
        self._of_try.ask("set_once", name=key, kept=kept, replaces=True)
        return DONE

    def delete(self, body: Any, *, key: str | None = None, **path: Any) -> ExecutionAnswer:
        """Without a key: all that the task keeps."""
        self._of_try.ask("forget_once", name=key)
        return DONE


class AssetStateStore:
    """Values of assets that the task names, for all tasks that do. An asset that has no other name is named by its URI."""

    def __init__(self, of_try: AirflowTry) -> None:
        self._of_try = of_try

    def get(self, body: Any, *, key: str, name: str = "", uri: str = "") -> ExecutionAnswer:
        kept = self._of_try.ask("asset_value", asset=name or uri, name=key).get("kept")
        if kept is None:
            return missing(f"Nothing is kept with asset {name or uri!r} as {key!r}.")
        return found({"value": kept["value"]})

    def put(self, body: Any, *, key: str, name: str = "", uri: str = "") -> ExecutionAnswer:
        self._of_try.ask("set_asset_value", asset=name or uri, name=key, kept={"value": body["value"]})
        return DONE

    def delete(self, body: Any, *, key: str | None = None, name: str = "", uri: str = "") -> ExecutionAnswer:
        """Without a key: all that is kept with the asset."""
        self._of_try.ask("forget_asset_values", asset=name or uri, name=key)
        return DONE


class AirflowInlets:
    """Events of assets that the task names as its inlets, or of their aliases."""

    def __init__(self, of_try: AirflowTry) -> None:
        self._of_try = of_try

    def asset(self, body: Any, *, name: str = "", uri: str = "") -> ExecutionAnswer:
        """One that has no other name is named by its URI."""
        named = self._named(name or uri, is_alias=False)
        return found(named[0]) if named else missing(f"There is no asset {name or uri!r}.")

    def assets_of_alias(self, body: Any, *, alias_name: str) -> ExecutionAnswer:
        return found(self._named(alias_name, is_alias=True))

    def _named(self, name: str, *, is_alias: bool) -> list[dict[str, Any]]:
        told = self._of_try.ask("inlet_assets", name=name, is_alias=is_alias)["assets"]
        return [{field: asset[field] for field in _OF_ASSETS} for asset in told]

    def by_asset(self, body: Any, *, name: str = "", uri: str = "", **query: Any) -> ExecutionAnswer:
        return self._events(name or uri, is_alias=False, **query)

    def by_alias(self, body: Any, *, name: str, **query: Any) -> ExecutionAnswer:
        return self._events(name, is_alias=True, **query)

    def _events(self, name: str, *, is_alias: bool, **query: Any) -> ExecutionAnswer:
        told = self._of_try.ask("inlet_events", name=name, is_alias=is_alias)["events"]
        wanted = [event for event in told if _between(event["at"], query.get("after"), query.get("before"))]
        if query.get("ascending", "true").lower() != "true":
            wanted.reverse()
        most = int(query["limit"]) if "limit" in query else None
        return found({"asset_events": [_event(number, event) for number, event in enumerate(wanted[:most])]})


def _between(at: str, after: str | None, before: str | None) -> bool:
    moment = datetime.fromisoformat(at)
    return not (after and moment < datetime.fromisoformat(after)) and not (before and moment > datetime.fromisoformat(before))


def _event(number: int, event: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": number,
        "timestamp": event["at"],
        "extra": event["extra"],
        "asset": {"name": event["asset"], "uri": event["uri"], "group": _GROUP, "extra": {}},
        "created_dagruns": [],
        "source_task_id": event["task_id"],
        "source_dag_id": event["dag_id"],
        "source_run_id": event["run_id"],
        "source_map_index": event["map_index"],
        "partition_key": event["partition"],
    }


def _is_over(until: str | None) -> bool:
    return until is not None and datetime.fromisoformat(until) <= datetime.now(UTC)
