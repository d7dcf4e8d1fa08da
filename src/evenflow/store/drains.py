"""Ending drains. For schedulers."""

from __future__ import annotations

from collections.abc import Sequence

from evenflow.core.service_states import DRAINED, GAVE_UP
from evenflow.store.columns import texts
from evenflow.store.inbox import EXECUTOR_LOCK
from evenflow.store.rows import Conn, execute

Object = tuple[str, str]  # (kind, name)


def is_draining(conn: Conn) -> bool:
    """Whether anything drains."""
    return execute(conn, "states/find_drains").fetchone() is not None


def find_drained(conn: Conn) -> list[Object]:
    """What seems to have nothing in flight any more, and what has drained until its deadline. Keeps nobody waiting."""
    return execute(conn, "states/find_drained").fetchall()


def end_drains(conn: Conn, found: Sequence[Object]) -> list[tuple[str, str]]:
    """Pauses those of ``found`` of which that is so; answers (action, object) of the events. Within a transaction of its own."""
    execute(conn, "states/await_executor", {"executor": EXECUTOR_LOCK})
    kinds, names = zip(*found, strict=True)
    params = {"kinds": texts(kinds), "names": texts(names), "drained": DRAINED, "gave_up": GAVE_UP}
    return execute(conn, "states/end_drains", params).fetchall()
