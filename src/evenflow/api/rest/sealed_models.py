"""What REST takes and answers about connections and variables."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from evenflow.api.rest.models import Request


class SharedRequest(Request):
    description: str | None = Field(default=None, max_length=1_000, description="As it is when absent.")
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
    kind: Literal["connection", "variable"]
    name: str
    text: str = Field(description="The URI, or the value.")


class CheckedValue(BaseModel):
    kind: str
    name: str


class StoredValue(BaseModel):
    name: str
    description: str
    dags: list[str] = Field(description="Patterns of the DAGs that may use it; none: all.")
    changed_at: datetime
    changed_by: str
    problem: str | None = Field(description="Why its value cannot be read.")


class StoredConnection(StoredValue):
    conn_type: str
    uri: str = Field(description="With `***` for what is secret, unless that was asked for.")
    login: str | None
    host: str | None
    port: int | None
    schema_: str = Field(alias="schema")

    model_config = {"populate_by_name": True, "serialize_by_alias": True}


class StoredVariable(StoredValue):
    value: str = Field(description="With `***` for what is secret, unless that was asked for.")


class Rotated(BaseModel):
    resealed: int
    keys_are_set: bool = Field(description="The keys are those of EVENFLOW_SECRET_KEYS, which their owner changes.")


class RenderedFields(BaseModel):
    fields: dict[str, str] = Field(description="Template fields of the newest try; empty when none was a template.")


class XComEntry(BaseModel):
    task_id: str
    map_index: int
    key: str
    size: int = Field(description="Bytes of its JSON.")
    length: int | None = Field(description="Elements of a list or an object.")
    is_secret: bool = Field(description="It holds a secret that its try was given, and is not shown.")
    is_stored: bool = Field(description="It lies in object storage.")
    created_at: datetime


class XComShown(XComEntry):
    value: object = Field(description="JSON; null when it is secret or lies in object storage.")
