"""Sessions that hang: a process that is stopped, or whose network is gone, must not keep others from its locks (R-HA5).

The server ends a transaction of a scheduler's turn ``HANG_S`` after it began, whatever its client does. A transaction that really
needs longer says so as it works, through :class:`LivingConnection`. In other transactions ``idle_in_transaction_session_timeout``
ends a client that pauses between two statements, and :func:`end_deaf` a client that does not read what the server sends.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from evenflow.core.limits import HANG_S, LONGEST_TURN_S
from evenflow.store.db.sql import sql

LIFE_S = 1.0  # this part of HANG_S is over when a transaction shows that it lives; shorter transactions never do
MORE = 4.0  # what an honest transaction that was ended gets the next time, as a factor: two times are enough


class LivingConnection(psycopg.Connection[Any]):
    """A connection whose transactions last while they show life, up to ``LONGEST_TURN_S``: every statement of
    :func:`evenflow.store.db.rows.execute` is a chance to. A transaction that was ended nevertheless, in a single long statement or
    on a very busy machine, would be ended again; so the next one has a larger ``budget_s`` from sign to sign.
    """

    budget_s = HANG_S  # of the next transaction; what it leaves, if it ends well, is HANG_S
    _began_at: float | None = None  # by the monotonic clock; None between transactions
    _shown_at = 0.0

    @contextmanager
    def transaction(self, savepoint_name: str | None = None, force_rollback: bool = False) -> Iterator[psycopg.Transaction]:
        if self._began_at is not None:  # a savepoint
            with super().transaction(savepoint_name, force_rollback) as transaction:
                yield transaction
            return
        with self.life(), super().transaction(savepoint_name, force_rollback) as transaction:
            self.ask_for_time()
            yield transaction

    @contextmanager
    def life(self) -> Iterator[None]:
        """Of one transaction, from before its beginning to after its end."""
        began = self._began_at = self._shown_at = time.monotonic()
        try:
            yield
            self.budget_s = HANG_S
        except psycopg.Error:
            overran = time.monotonic() - began >= self.budget_s  # any sign may have come too late, behind a long statement
            self.budget_s = min(MORE * self.budget_s, LONGEST_TURN_S) if overran else HANG_S
            raise
        finally:
            self._began_at = None

    def ask_for_time(self) -> None:
        """At its beginning: more than usual, if the last one needed that."""
        if self.budget_s > HANG_S:
            self._say_so()

    def show_life(self) -> None:
        """Costs a look at the clock, and a statement when the last one was a while ago."""
        if self._began_at is not None:
            now = time.monotonic()
            if now - self._shown_at > LIFE_S and now - self._began_at < LONGEST_TURN_S:
                self._shown_at = now
                self._say_so()

    def _say_so(self) -> None:
        self.execute(sql("sessions/show_life"), {"hang": f"{self.budget_s:g}s"}, prepare=True)


def end_deaf(conn: psycopg.Connection[Any]) -> list[str]:
    """Ends sessions whose client does not read what it asked for; returns the names of these clients."""
    rows = conn.execute(sql("sessions/end_deaf"), {"patience": HANG_S}, prepare=True).fetchall()
    return [str(name) for (name,) in rows]


# Of a session as others see it; lock: it waits for one.
STATES = ("idle", "working", "lock")


def read_state(conn: psycopg.Connection[Any], pid: int) -> str | None:
    """One of :data:`STATES`; null when the session is over."""
    row = conn.execute(sql("activity/read_state"), {"pid": pid}).fetchone()
    return None if row is None else str(row[0])
