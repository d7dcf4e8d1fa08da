"""What REST answers about clearing, marking and history, as its clients read it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from evenflow.client.answers import Answer


class TouchedInstance(Answer):
    run_id: str
    task_id: str
    map_index: int
    state: str


class Operated(Answer):
    """What was, or in a dry run would be, touched. ``more``: not all instances are listed; ``total`` says how many there
    are, at least so many unless ``counted``. ``already``: a mark changes nothing.
    """

    dry_run: bool
    runs: list[str]
    instances: list[TouchedInstance]
    more: bool
    total: int
    counted: bool
    already: bool


class RunEvent(Answer):
    at: datetime
    event: str
    state: str
    actor: str
    detail: dict[str, Any] | None


class ChangeEvent(Answer):
    event_id: int
    at: datetime
    actor: str
    action: str
    object: str
    detail: dict[str, Any] | None
    token_id: int | None
    address: str | None
    request_id: str | None
    times: int
    last_at: datetime | None


class TaskEvent(Answer):
    at: datetime
    map_index: int
    try_number: int
    event: str
    state: str
    actor: str | None
    detail: dict[str, Any] | None
