"""Assets and their events."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from evenflow.contracts.rest.record import Record, Request
from evenflow.core import limits


class AssetSummary(Record):
    name: str = Field(title="asset")
    uri: str = Field(title="uri")
    group: str
    extra: dict[str, Any]
    last_event_at: datetime | None = Field(title="changed last")
    consumers: list[str] = Field(title="waited for by", description="DAGs that wait for it.")


class RecordedAssetEvent(Record):
    event_id: int
    at: datetime = Field(title="at")
    asset: str = Field(title="asset")
    uri: str
    actor: str = Field(title="by")
    extra: dict[str, Any] = Field(title="extra")
    alias: str | None = Field(description="The alias through which the task added the asset.")
    dag_id: str | None = Field(
        description="Of the task whose success it was; null, as the three below, when it was emitted by hand."
    )
    run_id: str | None
    task_id: str | None
    map_index: int | None


class EventRequest(Request):
    asset: str = Field(max_length=limits.MAX_ASSET_NAME)
    extra: dict[str, Any] = Field(default_factory=dict, description="Passed on to the runs that it makes.")


class Emitted(Record):
    event_id: int
    at: datetime
    dag_ids: list[str] = Field(description="DAGs that wait for the asset and have the event now; paused ones do not.")
