"""What a scheduler says of a database that is gone."""

from __future__ import annotations

import logging

import psycopg
import pytest

from evenflow.errors import DatabaseUnavailable
from evenflow.scheduler.database import Outage


def test_one_line_when_it_goes_and_one_when_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    """R-HA18: whatever each thread sees of it."""
    outage = Outage(0.5)
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            outage.note("turns", psycopg.errors.AdminShutdown("terminating connection"))
            outage.note("duties", psycopg.errors.ReadOnlySqlTransaction("cannot execute nextval()"))
            outage.note("pulse", psycopg.OperationalError("server closed the connection unexpectedly"))
            outage.note("pulse", DatabaseUnavailable("PostgreSQL cannot be reached"))
        outage.is_over()
        outage.is_over()
    assert len(caplog.messages) == 2
    assert caplog.messages[0] == "the database cannot be used, waiting for it: terminating connection"
    assert caplog.messages[1].startswith("the database is back after_s=")


def test_a_statement_that_failed_is_no_outage(caplog: pytest.LogCaptureFixture) -> None:
    outage = Outage(0.5)
    outage.note("turns", psycopg.errors.DeadlockDetected("deadlock detected"))
    outage.note("turns", psycopg.errors.DeadlockDetected("deadlock detected"))
    outage.is_over()
    assert caplog.messages == ["a transaction was broken off, and is tried again: deadlock detected thread=turns pause_s=0.5"] * 2
