"""Ending drains. For schedulers."""

from __future__ import annotations

from evenflow.core.service_states import DRAINED, GAVE_UP
from evenflow.store.inbox import EXECUTOR_LOCK
from evenflow.store.rows import Conn, execute


def is_draining(conn: Conn) -> bool:
    """Whether anything drains."""
    return execute(conn, "states/find_drains").fetchone() is not None


def end_drains(conn: Conn) -> list[tuple[str, str]]:
    """Pauses what has nothing in flight any more, and what has drained until its deadline; answers (action, object) of the events.
    Within a transaction of its own.
    """
    execute(conn, "states/await_executor", {"executor": EXECUTOR_LOCK})
    return execute(conn, "states/end_drains", {"drained": DRAINED, "gave_up": GAVE_UP}).fetchall()
