"""What the Task Execution API answers: a status, JSON, and what the client must find in the heads."""

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


def refused(status: int, reason: str, message: str) -> ExecutionAnswer:
    """The client compares this very type of content before it reads why."""
    return found({"detail": {"reason": reason, "message": message}}, status)


def missing(message: str) -> ExecutionAnswer:
    return refused(404, "not_found", message)


def unknown(what: str) -> ExecutionAnswer:
    """Of what Evenflow has no counterpart for: named, and never passed over in silence."""
    return refused(422, "not_implemented", f"Evenflow has no {what}.")  # of a 5xx the client would ask again
