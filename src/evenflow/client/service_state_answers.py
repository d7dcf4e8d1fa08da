"""What REST answers about states of service, as its clients read it."""

from __future__ import annotations

from evenflow.client.answers import Answer, StandingObject


class HeldByTask(Answer):
    dag_id: str
    task_id: str
    running: int
    queued: int
    deferred: int


class ObjectStanding(StandingObject):
    """``runs`` is null of what has none."""

    tries: int
    tasks: list[HeldByTask]
    runs: int | None
