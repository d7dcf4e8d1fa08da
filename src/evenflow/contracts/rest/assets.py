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
    producers: list[str] = Field(description="DAGs whose tasks have changed it lately, by its newest 100 events.")
    consumers: list[str] = Field(title="waited for by", description="DAGs that wait for it.")
    partitions: dict[str, Any] | None = Field(description="By time: `every`; by keys: `keys`, and the `param` that says which.")


class RecordedAssetEvent(Record):
    event_id: int
    at: datetime = Field(title="at")
    asset: str = Field(title="asset")
    uri: str
    actor: str = Field(title="by")
    extra: dict[str, Any] = Field(title="extra")
    alias: str | None = Field(description="The alias through which the task added the asset.")
    partition: str | None = Field(title="partition", description="Of an asset that has partitions: which one changed.")
    dag_id: str | None = Field(
        description="Of the task whose success it was; null, as the three below, when it was emitted by hand."
    )
    run_id: str | None
    task_id: str | None
    map_index: int | None


class EventRequest(Request):
    asset: str = Field(max_length=limits.MAX_ASSET_NAME)
    extra: dict[str, Any] = Field(default_factory=dict, description="Passed on to the runs that it makes.")
    partition: str | None = Field(
        default=None, max_length=limits.MAX_NAME_CHARS, description="Which one, of an asset that has them."
    )


class Emitted(Record):
    event_id: int
    at: datetime
    dag_ids: list[str] = Field(description="DAGs that wait for the asset and have the event now; paused ones do not.")


class AssetPartition(Record):
    partition: str = Field(title="partition")
    is_done: bool = Field(title="state", description="There has been an event of it.")
    at: datetime | None = Field(title="changed last")
    actor: str | None = Field(title="by")
    dag_id: str | None
    run_id: str | None = Field(title="run")
    event_id: int | None
