"""Changes states of service as the API does."""

from __future__ import annotations

from evenflow.store.db.rows import execute
from tests.scheduler.world import World

CLOSED = ("draining", "resume_only", "paused", "frozen")  # in all of these nothing starts for the first time in a pool or queue


def set_state(world: World, kind: str, name: str, state: str, *, within_s: float | None = None) -> None:
    if kind == "dag":
        no_next = {"next_run_at": None, "next_logical": None, "wants_forecast": False}
        execute(world.conn, "dags/set_paused", {"dag_id": name, "is_paused": state not in ("active", "draining"), **no_next})
    if state == "active" or (kind == "dag" and state == "paused"):
        execute(world.conn, "states/delete_one", {"kind": kind, "name": name})
    else:
        execute(world.conn, "states/set_one", {"kind": kind, "name": name, "state": state, "actor": "ada", "within_s": within_s})
