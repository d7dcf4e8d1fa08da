"""Who shares pools and executors, and what waiting is worth there."""

from __future__ import annotations

from pydantic import Field

from evenflow.contracts.rest.record import Record, Request
from evenflow.core import limits


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
