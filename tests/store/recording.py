"""How the product binds its hot statements: asked of the store's own functions, so that tests of plans cannot drift from it."""

from __future__ import annotations

import contextlib
from typing import Any

from evenflow.core.selection.loading import FindHeads, FindRoom, Loading
from evenflow.core.service_states import ALL_OPEN
from evenflow.store.db.sql import sql
from evenflow.store.scheduling import inbox, runs, schedules, selection
from tests.house.project import STATEMENTS


class Recorder:
    """In the place of a connection: what the store's functions send."""

    def __init__(self) -> None:
        self.sent: dict[bytes, dict[str, Any]] = {}
        self.rowcount = 0

    def execute(self, text: bytes, params: dict[str, Any], **_: Any) -> Recorder:
        self.sent[text] = params
        return self

    def fetchall(self) -> list[Any]:
        return []

    def fetchone(self) -> tuple[list[int], int, bool]:
        return [], 0, True


def bound_by_the_store(run_keys: list[int], limits: list[int]) -> dict[str, dict[str, Any]]:
    """What a turn asks the inbox and the lanes for, as the product binds it, with its own bounds."""
    recorder = Recorder()
    conn: Any = recorder
    inbox.lock_runs(conn, inbox.Since(), limit=200, helps_after_s=1.0)
    inbox.take_reports(conn, limit=1000)
    inbox.take_timers(conn, run_keys, share=500)
    with contextlib.suppress(ValueError):  # there is no answer
        inbox.delete_orphans(conn, inbox.Since())
    for question in (
        *next(Loading(dict.fromkeys(limits, 1), ALL_OPEN, 0.0).select()),
        FindHeads(dict.fromkeys(limits, 1), ALL_OPEN, by_base=True),
        FindRoom(limits),
    ):
        selection.ask(conn, question)
    selection.find_waiting(conn, limits)
    runs.take_queued(conn, "0", dags=200, limit=100, share=50)
    schedules.take_due_dags(conn, limit=100, waiting=16, served=[])
    names = {sql(name): name for name in (f"{path.parent.name}/{path.stem}" for path in STATEMENTS.rglob("*.sql"))}
    return {names[text]: params for text, params in recorder.sent.items()}
