"""Executors: what runs tries, which queues belong to each, and how many slots it has."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from evenflow.contracts.rest.record import ListedName, Record, Request
from evenflow.core import limits
from evenflow.core.limits import UNLIMITED_SLOTS


class Executor(Record):
    name: str = Field(title="executor")
    kind: str = Field(
        title="kind", description="`native`, whose workers ask for tries; `celery` or `kubernetes`, which are sent each."
    )
    queues: list[str] = Field(title="queues", description="That belong to it; those of no executor belong to `worker`.")
    slots: int = Field(
        title="slots", description="Tries that it may have at once, from their start on until they end or are deferred."
    )
    used: int = Field(title="used")
    push: bool = Field(description="Whether launchers send it its tries.")
    options: dict[str, Any] = Field(description="What is not as by default.")
    trouble: str | None = Field(default=None, description="Why nothing is sent there, or begins there, and what to do, in words.")
    changed_at: datetime = Field(title="changed at")
    changed_by: str = Field(title="changed by")


class ExecutorChange(Request):
    kind: str | None = Field(
        default=None,
        max_length=limits.MAX_FEW_WORDS_CHARS,
        description="An executor keeps the one that it has; a new one needs one.",
    )
    slots: int | None = Field(
        default=None,
        ge=0,
        le=UNLIMITED_SLOTS,
        description=f"With 0 none starts. As they are when absent; of a new one {UNLIMITED_SLOTS:,}.",
    )
    queues: list[ListedName] | None = Field(
        default=None, max_length=limits.MAX_QUEUES, description="All of them; as they are when absent."
    )
    options: dict[str, Any] | None = Field(default=None, description="All that are not as by default; as they are when absent.")
