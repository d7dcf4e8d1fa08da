"""Settings that all schedulers share, and every value that one ever had."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from evenflow.contracts.rest.record import Record, Request


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
