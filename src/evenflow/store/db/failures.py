"""What the database's errors mean to the modules above, which do not know the driver."""

from __future__ import annotations

import psycopg
from psycopg_pool import PoolTimeout

from evenflow.errors import DatabaseUnavailable, XComError

# Of a value: a NUL character, a number out of range, JSON that is deeper than PostgreSQL's stack. The driver counts the last two
# among operational errors; sent again they would fail again.
BAD_VALUE = (psycopg.DataError, psycopg.errors.StatementTooComplex, psycopg.errors.ProgramLimitExceeded)


# The database could not be reached, broke off, took too long, ended a session that hung, or takes no writes: it was demoted, or is
# full.
OUTAGES = (
    PoolTimeout,
    DatabaseUnavailable,
    psycopg.OperationalError,
    psycopg.errors.TransactionTimeout,
    psycopg.errors.IdleInTransactionSessionTimeout,
    psycopg.errors.ReadOnlySqlTransaction,
)


def is_outage(error: Exception) -> bool:
    """Returns whether the request itself is right: it may succeed later."""
    return isinstance(error, OUTAGES) and not is_bad_value(error)


def is_gone(error: Exception) -> bool:
    """Whether it is about the server as a whole: it cannot be reached, goes, comes, or takes no writes."""
    if isinstance(error, psycopg.OperationalError):
        return error.sqlstate is None or error.sqlstate.startswith(("08", "57P0"))  # shutdowns, a crash, a start that is not over
    return isinstance(error, DatabaseUnavailable | psycopg.errors.ReadOnlySqlTransaction)


def is_bad_value(error: Exception) -> bool:
    """Whether the database refused a value of the request: a NUL character in a text, a number out of range, JSON too deep."""
    return isinstance(error, BAD_VALUE)


def not_storable(what: str, error: psycopg.Error) -> XComError:
    """The error of a value that is not JSON, or is JSON but not for PostgreSQL (NUL characters, numbers of 100,000 digits)."""
    said = error.diag.message_detail or error.diag.message_primary or str(error)
    return XComError(f"{what} cannot be stored: {said.rstrip('.')}. Return plain JSON without NUL characters, or a path to a file.")
