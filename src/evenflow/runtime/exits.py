"""How our processes end: exit codes, and which error has which."""

from __future__ import annotations

import os
from enum import IntEnum

from evenflow import errors


class Exit(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2  # wrong usage or bad input: typing something else helps
    UNREACHABLE = 3  # the database, the API or a service is not there: starting something helps
    BUG = 70  # a defect of Evenflow
    INTERRUPTED = 130  # Ctrl-C
    TERMINATED = 143  # SIGTERM, or the terminal was closed


_UNREACHABLE = (
    errors.DatabaseUnavailable,
    errors.DatabaseTooOld,
    errors.DatabaseNotMigrated,
    errors.DatabaseTooNew,
    errors.OldServicesRun,
    errors.MigrationBlocked,
    errors.ApiUnavailable,
    errors.ServiceFailed,
)


def exit_code(error: errors.EvenflowError) -> Exit:
    if isinstance(error, _UNREACHABLE) or (isinstance(error, errors.ApiRefused) and error.status >= 500):
        return Exit.UNREACHABLE
    return Exit.USAGE


def debugging() -> bool:
    """Whether tracebacks are wanted."""
    return os.environ.get("EVENFLOW_DEBUG", "") not in ("", "0")
