"""Schedulers that die between any two statements: the real turn and the real look at leases, on a connection that ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import psycopg

from evenflow.errors import LostRace
from evenflow.killpoints import KillPoint, watch
from evenflow.scheduler.advance import TurnOutcome, advance
from evenflow.scheduler.catalog import Catalog
from evenflow.scheduler.duties.leases import watch_leases
from evenflow.store.db.connect import connect


class Death(Exception):
    """The process ends here."""


class Manner(Enum):
    """How it ends."""

    SILENT = "its socket closes, and it does nothing more"
    CUT = "the server ends its session, and it sees the error"
    UNANSWERED = "its commit is done, and it does not hear of it"
    OVERTAKEN = "it stands still, others do what they want, and it goes on"


@dataclass(frozen=True, slots=True)
class Doom:
    """Before the statement of this number, counted from 0. More than there are: it lives."""

    statement: int
    manner: Manner
    meanwhile: Callable[[], None] = lambda: None  # what others do


class Scheduler:
    """One of several. ``deaths`` of it so far, each at a statement that it had begun with."""

    def __init__(self, url: str, number: int, executioner: psycopg.Connection[Any]) -> None:
        self._url, self._number, self._executioner = url, number, executioner
        self._doom: Doom | None = None
        self._sent = 0
        self.deaths = 0
        self.given = 0  # workers that its turns have given something
        self._begin()

    def turn(self, doom: Doom | None = None, *, max_runs: int = 200) -> TurnOutcome | None:
        """What a turn did; None when it died in it. It begins anew as the service does: nothing is remembered."""
        outcome: TurnOutcome | None = self._live(doom, lambda: advance(self._conn, self._catalog, max_runs=max_runs))
        self.given += len(outcome.started.dispatches.takers) if outcome else 0
        return outcome

    def look_at_leases(self, doom: Doom | None = None) -> None:
        self._live(doom, lambda: watch_leases(self._conn))

    def close(self) -> None:
        self._conn.close()

    def _begin(self) -> None:
        self._conn = connect(self._url, name=f"s{self._number}", generic_plans=True)
        self._execute = self._conn.execute
        self._conn.execute = self._doomed  # type: ignore[method-assign]
        self._catalog = Catalog()

    def _live(self, doom: Doom | None, work: Any) -> Any:
        self._doom, self._sent = doom, 0
        if doom is not None and doom.manner is Manner.UNANSWERED:
            watch(self._die_unanswered)
        try:
            return work()
        except LostRace:
            raise
        except (Death, psycopg.OperationalError, psycopg.InterfaceError):
            if doom is None or doom.manner is Manner.OVERTAKEN:
                raise
            self.deaths += 1
            self._conn.close()
            self._begin()
            return None
        finally:
            watch(None)

    def _doomed(self, *args: Any, **kw: Any) -> psycopg.Cursor[Any]:
        doom = self._doom
        if doom is not None and self._sent == doom.statement and doom.manner is not Manner.UNANSWERED:
            if doom.manner is Manner.SILENT:
                self._conn.pgconn.finish()
                raise Death
            if doom.manner is Manner.CUT:
                self._executioner.execute("select pg_terminate_backend(%s, 5000)", [self._conn.info.backend_pid])
            else:
                doom.meanwhile()
        self._sent += 1
        return self._execute(*args, **kw)

    def _die_unanswered(self, point: KillPoint) -> None:
        if point in (KillPoint.TURN_COMMITTED, KillPoint.LEASES_LAPSED, KillPoint.LOSSES_REPORTED):
            self._conn.pgconn.finish()
            raise Death
