"""A connection that counts what a distant server would cost: statements by name, and how often its owner waits for an answer."""

from __future__ import annotations

import select
from collections import Counter
from functools import cache
from importlib.resources import files
from typing import Any

import psycopg
from psycopg.waiting import Ready, Wait

from evenflow.store.db.sql import sql


@cache
def _names() -> dict[bytes, str]:
    areas = (files("evenflow.store") / "sql").iterdir()
    names = (f"{area.name}/{f.name.removesuffix('.sql')}" for area in areas for f in area.iterdir())
    return {sql(name): name for name in names}


class CountingConnection(psycopg.Connection[Any]):
    """Answers are read only when they are waited for, as if none came early. ``statements`` are those of the product, ``waits`` the
    round trips.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.statements: Counter[str] = Counter()
        self.waits = 0

    def forget(self) -> None:
        self.statements.clear()
        self.waits = 0

    def execute(self, query: Any, params: Any = None, **kwargs: Any) -> psycopg.Cursor[Any]:
        self.statements[_names().get(query, "other") if isinstance(query, bytes) else "other"] += 1
        return super().execute(query, params, **kwargs)

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        waited, result = _waited_for(gen, self.pgconn.socket)
        self.waits += waited
        return result


class AsyncCountingConnection(psycopg.AsyncConnection[Any]):
    """As the other one, for the API's statements. It holds up its event loop."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.waits = 0

    async def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        waited, result = _waited_for(gen, self.pgconn.socket)
        self.waits += waited
        return result


def _waited_for(gen: Any, socket: int) -> tuple[bool, Any]:
    """Whether it had to wait for an answer, and its result."""
    waited, ready = False, None
    try:
        while True:
            if gen.send(ready) == Wait.R:
                waited = True
                select.select([socket], [], [])
                ready = Ready.R
            else:
                select.select([], [socket], [])
                ready = Ready.W
    except StopIteration as end:
        return waited, end.value
