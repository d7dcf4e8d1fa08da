"""What people steer with: pools and who shares them, settings, states of service."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from evenflow.contracts.rest.record import ObjectKindWord, Record, Request, ServiceWord
from evenflow.core import limits
from evenflow.core.limits import INT32_MAX
from evenflow.core.service_states import ServiceState


class Pool(Record):
    name: str = Field(title="pool")
    used: int = Field(title="used")
    slots: int = Field(title="slots")
    policy: str = Field(
        title="policy",
        description="Whether smaller tasks may pass one that does not fit: `backfill`, `strict`, `reserve-after=10m`.",
    )
    while_deferred: str = Field(
        title="while deferred", description="What becomes of a slot while its task is deferred: `hold` or `release`."
    )
    description: str = Field(title="description")


class PoolChange(Request):
    slots: int = Field(ge=0, le=INT32_MAX)
    description: str | None = Field(default=None, max_length=limits.MAX_DESCRIPTION_CHARS, description="As it is when absent.")
    policy: str | None = Field(
        default=None, max_length=limits.MAX_FEW_WORDS_CHARS, description="As it is when absent; `backfill` for a new pool."
    )
    while_deferred: str | None = Field(
        default=None, max_length=limits.MAX_FEW_WORDS_CHARS, description="As it is when absent; `hold` for a new pool."
    )


class SettingValue(Record):
    name: str = Field(title="setting")
    value: Any = Field(title="value")
    default: Any = Field(title="default")
    kind: str = Field(description="What a value may be.")
    meaning: str
    changed_by: str | None = Field(title="set by")
    changed_at: datetime | None = Field(title="at", description="Null: nobody has set it.")
    version: int | None = Field(description="Greater than that of any change before it, of whichever setting.")


class SettingVersion(Record):
    version: int = Field(title="version")
    value: Any = Field(title="value")
    unset: bool = Field(description="Somebody took back what was set; the value is the default.")
    changed_by: str = Field(title="by")
    changed_at: datetime = Field(title="at")


class SettingRequest(Request):
    value: Any


class StandingObject(Record):
    kind: ObjectKindWord
    name: str = Field(description="Of the system: all.")
    state: ServiceWord
    since: datetime | None = Field(description="Null of an active object, and of a DAG that is paused and no more.")
    actor: str | None
    deadline: datetime | None = Field(description="Until when a drain waits.")
    reason: str | None = Field(description="Why, when nobody asked for just this state.")


class HeldByTask(Record):
    dag_id: str
    task_id: str
    running: int
    queued: int = Field(description="Wait for a worker.")
    deferred: int = Field(description="Wait for their trigger, or are on their way back.")


class ObjectStanding(StandingObject):
    tries: int = Field(description="Tries in flight.")
    tasks: list[HeldByTask] = Field(description="In flight, by task, the most first; not all when there are very many.")
    runs: int | None = Field(description="Runs that run, of a DAG or of the system.")


class StandingChange(Request):
    state: ServiceState
    within_s: float | None = Field(default=None, gt=0, le=limits.MAX_DRAIN_S, description="How long a drain waits at most.")


class Sharing(Record):
    kind: str = Field(title="kind", description="`pool` or `executor`.")
    name: str = Field(title="name")
    aging: str = Field(
        title="aging",
        description="`off`, or a time such as `10m`: for each that it waits, a task counts as one of a run with a priority more.",
    )
    share_by: str = Field(
        title="shared by",
        description="Whose slots are kept in proportion: `dag`, `tag` or `owner`, each of which is a tenant; or `off`.",
    )
    weights: dict[str, int] = Field(description="Of tenants. Those that are not named have 1; by tag they are one tenant.")


class SharingChange(Request):
    aging: str | None = Field(
        default=None, max_length=limits.MAX_FEW_WORDS_CHARS, description="As it is when absent; `off` at first."
    )
    share_by: str | None = Field(
        default=None, max_length=limits.MAX_FEW_WORDS_CHARS, description="As it is when absent; `off` at first."
    )
    weights: dict[str, int] | None = Field(default=None, description="As they are when absent; with `share_by`, none.")


class Tenant(Record):
    name: str = Field(title="tenant", description="Empty for all DAGs together that have no tag with a weight.")
    weight: int = Field(title="weight")
    held: int = Field(title="slots", description="That its tasks hold.")
