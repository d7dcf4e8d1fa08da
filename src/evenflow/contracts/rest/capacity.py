"""How much may run at once, how much of it is taken, and what waits for the rest."""

from __future__ import annotations

from pydantic import Field

from evenflow.contracts.rest.executors import Executor
from evenflow.contracts.rest.plan import Plan
from evenflow.contracts.rest.pools import Pool
from evenflow.contracts.rest.record import Record
from evenflow.contracts.rest.system import PushExecutorStatus, QueueStatus


class Capacity(Record):
    """As the answers of `/pools`, `/executors`, `/status` and `/plan` have it, read at one moment."""

    pools: list[Pool]
    executors: list[Executor]
    queues: list[QueueStatus]
    push_executors: list[PushExecutorStatus] = Field(description="Those that launchers send what waits.")
    plan: Plan
