"""The streams of one API process, of each kind."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from evenflow.api.logs.store import LogStore
from evenflow.api.streams.capacity import CapacityStreams
from evenflow.api.streams.logs import LogStreams
from evenflow.api.streams.moves import Live
from evenflow.api.streams.pages import OpenStreams
from evenflow.store.db.connect import AsyncPool


class Streams:
    channels = Live.channels

    def __init__(self, pool: AsyncPool, logs: LogStore) -> None:
        self.open = OpenStreams()
        self.moves, self.logs, self.capacity = Live(pool), LogStreams(pool, logs), CapacityStreams(pool)

    def wake(self) -> None:
        """Says that something may move now."""
        self.moves.wake()
        self.capacity.wake()

    def loops(self) -> dict[str, Coroutine[Any, Any, None]]:
        return {"live": self.moves.serve(), "capacity": self.capacity.serve()}
