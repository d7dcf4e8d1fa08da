"""Pools: how many slots there are, and what passes what."""

from __future__ import annotations

from pydantic import Field

from evenflow.contracts.rest.record import Record, Request
from evenflow.core import limits
from evenflow.core.limits import INT32_MAX


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
