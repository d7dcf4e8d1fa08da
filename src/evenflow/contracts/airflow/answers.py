"""Answers of the Task Execution API: a status, JSON, and the headers that the client needs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ExecutionAnswer:
    status: int
    body: bytes = b""
    heads: dict[str, str] = field(default_factory=dict)


DONE = ExecutionAnswer(204)


def found(value: Any, status: int = 200) -> ExecutionAnswer:
    return ExecutionAnswer(status, json.dumps(value).encode(), {"content-type": "application/json"})


def refused(status: int, reason: str, message: str, **more: str) -> ExecutionAnswer:
    """Refuses a request. The client requires exactly this content type before it reads the reason."""
    return found({"detail": {"reason": reason, "message": message, **more}}, status)


def missing(message: str) -> ExecutionAnswer:
    return refused(404, "not_found", message)


def unknown(what: str) -> ExecutionAnswer:
    """Refuses what has no counterpart in Evenflow: by its name, and never silently."""
    return refused(422, "not_implemented", f"Evenflow has no {what}.")  # after a 5xx the client would repeat it
