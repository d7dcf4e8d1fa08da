"""Connections and variables."""

from __future__ import annotations

from datetime import datetime

from pydantic import ConfigDict, Field

from evenflow.contracts.rest.record import Record, Request
from evenflow.core import limits
from evenflow.core.object_names import SealedKind


class SharedRequest(Request):
    description: str | None = Field(default=None, max_length=limits.MAX_DESCRIPTION_CHARS, description="As it is when absent.")
    dags: list[str] | None = Field(
        default=None,
        description="Patterns of the DAGs that may use it, such as `sales_*`; an empty list: all. As it is when absent.",
    )


class ConnectionRequest(SharedRequest):
    uri: str | None = Field(
        default=None, description="`type://login:password@host:port/schema?extra`, or Airflow's JSON. As it is when absent."
    )


class VariableRequest(SharedRequest):
    value: str | None = Field(default=None, description="As it is when absent.")


class CheckRequest(SharedRequest):
    kind: SealedKind
    name: str
    text: str = Field(description="The URI, or the value.")


class CheckedValue(Record):
    kind: str
    name: str


class StoredValue(Record):
    name: str = Field(title="name")
    dags: list[str] = Field(title="DAGs", description="Patterns of the DAGs that may use it; none: all.")
    source: str = Field(title="from", description="Where its value comes from: the database, or another store that the API asks.")
    changed_at: datetime | None = Field(title="changed", description="Of one in the database.")
    changed_by: str = Field(title="by")
    description: str = Field(title="description")
    problem: str | None = Field(description="Why its value cannot be read.")


class StoredConnection(StoredValue):
    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    conn_type: str = Field(title="type")
    uri: str = Field(description="With `***` for what is secret, unless that was asked for.")
    login: str | None = Field(title="login")
    host: str | None = Field(title="host")
    port: int | None = Field(title="port")
    schema_: str = Field(alias="schema")


class StoredVariable(StoredValue):
    value: str = Field(title="value", description="With `***` for what is secret, unless that was asked for.")


class Rotated(Record):
    resealed: int
    keys_are_set: bool = Field(description="The keys are those of EVENFLOW_SECRET_KEYS, which their owner changes.")
