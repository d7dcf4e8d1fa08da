"""Running one trigger as a triggerer does: from what it serialised, in an event loop, until its first event."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from evenflow.errors import ApiRefused
from evenflow.sdk import xcom
from evenflow.sdk.triggers import BaseTrigger, load

FIRES_WITHIN_S = 20.0


class ControlPlane:
    """Knows these connections, and answers other questions with these, one after the other, the last again and again."""

    def __init__(self, connections: Mapping[str, str] | None = None, **answers: list[Any]) -> None:
        self.connections, self.answers = dict(connections or {}), answers
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def ask(self, question: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((question, arguments))
        if question == "connection":
            if arguments["name"] == "forbidden":
                raise ApiRefused(403, "Connection 'forbidden' may not be used by DAG 'd'.")
            text = self.connections.get(arguments["name"])
            return {"text": text, "similar": list(self.connections) if arguments.get("similar") and text is None else []}
        answers = self.answers[question]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)


def elsewhere(trigger: BaseTrigger) -> Any:
    """The trigger as a triggerer makes it."""
    path, kwargs = trigger.serialize()
    sent = xcom.to_json({name: xcom.encode(value, name) for name, value in kwargs.items()}, "arguments")
    return load(path, json.loads(sent))


async def event_of(trigger: BaseTrigger, plane: ControlPlane | None = None, within_s: float = FIRES_WITHIN_S) -> dict[str, Any]:
    """The payload of its first event, which must be one that can be stored."""
    made = elsewhere(trigger)
    made.channel = plane or ControlPlane()
    async with asyncio.timeout(within_s):
        events = made.run()
        try:
            event = await anext(events)
        finally:
            await events.aclose()
            await made.cleanup()
    payload: dict[str, Any] = event.payload
    xcom.to_json(xcom.encode(payload, "event"), "event")
    return payload
