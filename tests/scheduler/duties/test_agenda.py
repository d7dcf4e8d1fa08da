"""Duties: none stops the turns, none stops another."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from evenflow.core.limits import DUTY_PAUSE_S
from evenflow.scheduler.duties.agenda import Agenda, Duty
from evenflow.store.db.connect import connect


class Clock:
    """Moves when somebody looks, so that a test takes no time."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.01
        return self.now


class Stop(threading.Event):
    """Waits by moving the clock; is set at ``end``."""

    def __init__(self, clock: Clock, end: float) -> None:
        super().__init__()
        self._clock, self._end = clock, end

    def wait(self, timeout: float | None = None) -> bool:
        self._clock.now += timeout or 0.0
        return self.is_set()

    def is_set(self) -> bool:
        return self._clock.now >= self._end


OUTAGES = (
    psycopg.errors.QueryCanceled,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.DiskFull,
    ValueError,
)


@pytest.mark.parametrize("error", OUTAGES)
def test_a_duty_that_always_fails_backs_off_alone(db: psycopg.Connection, error: type[Exception]) -> None:
    """R-HA20: with errors of the outage kind too, on one connection."""
    clock, failed, worked = Clock(), [], []

    def fail(conn: Any) -> None:
        failed.append(clock.now)
        raise error("always")

    agenda = Agenda([Duty("one", 1.0, fail), Duty("other", 1.0, lambda conn: worked.append(clock.now))], clock=clock)
    agenda.perform(db, Stop(clock, 600.0))
    pauses = [round(b - a) for a, b in pairwise(failed)]
    assert pauses[:6] == [1, 2, 4, 8, 16, 32]
    assert max(pauses) <= DUTY_PAUSE_S + 1
    assert len(worked) > 500


def test_a_duty_that_succeeds_again_has_its_pace_again(db: psycopg.Connection) -> None:
    clock, looks = Clock(), []

    def perform(conn: Any) -> None:
        looks.append(clock.now)
        if len(looks) <= 4:
            conn.execute("select 1 / 0")

    Agenda([Duty("one", 1.0, perform)], clock=clock).perform(db, Stop(clock, 30.0))
    assert [round(b - a) for a, b in pairwise(looks)][:6] == [1, 2, 4, 8, 1, 1]


def test_a_duty_says_when_it_is_due_again(db: psycopg.Connection) -> None:
    clock, looks = Clock(), []

    def perform(conn: Any) -> float | None:
        looks.append(clock.now)
        return 2.0 if len(looks) < 4 else None

    Agenda([Duty("one", 3600.0, perform)], clock=clock).perform(db, Stop(clock, 3600.0))
    assert [round(at) for at in looks] == [0, 2, 4, 6]


def test_a_duty_that_breaks_the_connection_lets_the_others_go_first_on_the_next(database_url: str) -> None:
    """R-HA20: the server ends the session of a transaction that takes too long."""
    clock, looks, worked = Clock(), [], []

    def die(conn: psycopg.Connection[Any]) -> None:
        looks.append(clock.now)
        conn.execute("select pg_terminate_backend(pg_backend_pid())")

    agenda = Agenda([Duty("one", 1.0, die), Duty("other", 1.0, lambda conn: worked.append(len(looks)))], clock=clock)
    for _ in range(3):
        with connect(database_url, name="test") as conn, pytest.raises(psycopg.errors.AdminShutdown):
            agenda.perform(conn, Stop(clock, 600.0))
    assert len(looks) == 3
    assert worked[0] == 1, "it was due again only after the other had its turn"
