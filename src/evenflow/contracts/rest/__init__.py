"""What REST takes and answers: each record once, for the API, its description, its client and the command line.

A subject is imported when it is first named: the client names all of them, and a command needs one or two.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenflow.contracts.rest import (
        approvals,
        assets,
        audit,
        backfills,
        capacity,
        dags,
        device_logins,
        executors,
        fleets,
        insights,
        live,
        notifications,
        plan,
        pools,
        problems,
        queries,
        record,
        runs,
        sealed,
        service_states,
        sessions,
        settings,
        sharing,
        system,
        tasks,
        tokens,
        users,
        why,
    )

PREFIX = "/api/v1"  # where REST is
IDENTITY = "/identity"  # below it: logging in by a provider of identities

__all__ = [
    "IDENTITY",
    "PREFIX",
    "approvals",
    "assets",
    "audit",
    "backfills",
    "capacity",
    "dags",
    "device_logins",
    "executors",
    "fleets",
    "insights",
    "live",
    "notifications",
    "plan",
    "pools",
    "problems",
    "queries",
    "record",
    "runs",
    "sealed",
    "service_states",
    "sessions",
    "settings",
    "sharing",
    "system",
    "tasks",
    "tokens",
    "users",
    "why",
]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
