"""How sensors reach the triggers of ``evenflow.triggers``: by name, because these need packages that only some tasks use, such as
an HTTP client.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from evenflow.errors import LookRefused, TaskSkipped
from evenflow.sdk.awaiting import where_no_loop_runs
from evenflow.sdk.context import Context
from evenflow.sdk.triggers import BaseTrigger

EXTERNAL_TASK = "evenflow.triggers.external:ExternalTaskTrigger"
FILE = "evenflow.triggers.file:FileTrigger"
HTTP = "evenflow.triggers.http:HttpTrigger"
SQL = "evenflow.triggers.sql:SqlTrigger"
SHORTEST_PAUSE_S = 0.1  # between two looks of a built-in trigger: for shorter ones, an event is the right means


def built_in(place: str, **arguments: Any) -> BaseTrigger:
    """Returns the trigger at ``module:class``, made with these arguments."""
    module, _, name = place.partition(":")
    trigger: BaseTrigger = getattr(importlib.import_module(module), name)(**arguments)
    return trigger


def look(trigger: Any, context: Context, method: str = "look") -> Any:
    """Looks with a built-in trigger from this process. By default it returns what the event would hold, or None: not yet."""
    import asyncio

    trigger.channel = _ThroughTry(context)
    return where_no_loop_runs(lambda: asyncio.run(getattr(trigger, method)()))


def checked(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the event of a built-in trigger, unless the event means that the task fails or is skipped."""
    match event["status"]:
        case "success":
            return event
        case "skipped":
            raise TaskSkipped(event["message"])
        case _:
            raise LookRefused(event["message"])


class _ThroughTry:
    def __init__(self, context: Context) -> None:
        self._control = context["ti"].control

    async def ask(self, question: str, arguments: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self._control.ask(question, arguments)
        return answer
