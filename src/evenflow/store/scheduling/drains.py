"""Ending drains. For schedulers."""

from __future__ import annotations

from evenflow.core.service_states import DRAINED, GAVE_UP
from evenflow.store.db.columns import texts
from evenflow.store.db.rows import Conn, execute
from evenflow.store.scheduling.inbox import EXECUTOR_LOCK


def find_drained(conn: Conn) -> list[tuple[str, str, bool]]:
    """(kind, name, whether anything is in flight) of what seems to have nothing in flight any more, and of what has drained until
    its deadline. Delays no other transaction, and costs a probe while nothing drains.
    """
    return execute(conn, "states/find_drained").fetchall()


def end_drains(conn: Conn) -> list[tuple[str, str]]:
    """Pauses what is drained; returns (action, object) of the events. Needs a transaction of its own, in which nothing starts."""
    execute(conn, "states/await_executor", {"executor": EXECUTOR_LOCK})
    judged = execute(conn, "states/find_drained").fetchall()
    params = {
        "kinds": texts(kind for kind, _, _ in judged),
        "names": texts(name for _, name, _ in judged),
        "in_flight": [in_flight for _, _, in_flight in judged],
        "drained": DRAINED,
        "gave_up": GAVE_UP,
    }
    return execute(conn, "states/end_drains", params).fetchall()
