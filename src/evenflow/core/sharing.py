"""The rules of a pool or an executor beyond the order: whether waiting tasks age, and which tenants share it.

:mod:`evenflow.core.selection.shares` and :mod:`evenflow.core.selection.order` define how a round then chooses.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from evenflow.core.limits import MAX_NAME_CHARS, MAX_NAMES
from evenflow.core.model import DagSpec
from evenflow.core.selection.pool_policy import parse_time, show_time
from evenflow.errors import BadValue

SharedKind = Literal["pool", "executor"]
DAG, TAG, OWNER = "dag", "tag", "owner"
NOT = "off"
MAX_WEIGHT = 1_000  # a tenant with more than a thousand times another's weight needs its own pool
LEAST_AGING_S = 10  # steps: a round decides several times a second, so shorter ones have no effect
MOST_AGING_S = 30 * 86_400


def tenant_of(spec: DagSpec, share_by: str, weighted: Collection[str]) -> str:
    """Returns the tenant of a DAG's tasks. By tag, it is the DAG's first tag with a weight; DAGs without one form one tenant."""
    if share_by == DAG:
        return spec.dag_id
    if share_by == OWNER:
        return spec.owner
    return next((tag for tag in spec.tags if tag in weighted), "")


@dataclass(frozen=True, slots=True)
class SharingRule:
    """``aging_s`` is None without aging, ``share_by`` without sharing."""

    aging_s: int | None = None
    share_by: str | None = None
    weights: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, aging: str, share_by: str, weights: Mapping[str, int]) -> SharingRule:
        """Reads ``aging``, a time such as 10m, and ``share_by``: dag, tag or owner; either may be off. Raises :class:`BadValue`."""
        aging_s = None if aging == NOT else parse_time(aging)
        if aging != NOT and (aging_s is None or not LEAST_AGING_S <= aging_s <= MOST_AGING_S):
            raise BadValue(f"{aging!r} is no time after which a task counts for more. Type 10s to 30d, for example 10m, or off")
        if share_by not in (DAG, TAG, OWNER, NOT):
            raise BadValue(f"Nothing can be shared by {share_by!r}. Type {DAG}, {TAG}, {OWNER} or {NOT}")
        for name, weight in weights.items():
            if not 1 <= weight <= MAX_WEIGHT or len(name) > MAX_NAME_CHARS:
                raise BadValue(f"{name}={weight} is no weight of a tenant. Weights are from 1 to {MAX_WEIGHT:,}")
        if len(weights) > MAX_NAMES:
            raise BadValue(f"These are more than {MAX_NAMES:,} weights.")
        if share_by == TAG and not weights:
            raise BadValue("Who shares by tag says which tags are tenants, by their weights. Type for example --weight team-a=1")
        if share_by == NOT and weights:
            raise BadValue("Weights mean nothing where nothing is shared. Leave them out, or say by what: dag, tag or owner")
        return cls(aging_s, None if share_by == NOT else share_by, weights)

    @property
    def aging(self) -> str:
        """The aging as :meth:`parse` takes it."""
        return NOT if self.aging_s is None else show_time(self.aging_s)
