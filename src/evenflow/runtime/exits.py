"""The exit codes of Evenflow's processes, and the code of each error."""

from __future__ import annotations

import os
from enum import IntEnum
from pathlib import Path

from evenflow import errors


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2  # wrong usage or bad input: another command line helps
    UNREACHABLE = 3  # the database, the API or a service is down: starting it helps
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


def exit_code(error: errors.EvenflowError) -> ExitCode:
    if isinstance(error, _UNREACHABLE) or (isinstance(error, errors.ApiRefused) and error.status >= 500):
        return ExitCode.UNREACHABLE
    return ExitCode.USAGE


def unusable_home(error: OSError) -> errors.SettingsError | None:
    """Returns what to do when the system refuses access to the home; None for any other error."""
    from evenflow.runtime.settings import load_settings

    home = load_settings().home
    about = [Path(os.fsdecode(name)) for name in (error.filename, error.filename2) if isinstance(name, (str, bytes, os.PathLike))]
    if not any(path.is_relative_to(home) or home.is_relative_to(path) for path in about):
        return None
    return errors.SettingsError(
        f"The home {home} cannot be used: {error.strerror} ({error.filename}). "
        "Set EVENFLOW_HOME to a folder in which you may write."
    )


def debugging() -> bool:
    """Returns whether tracebacks are wanted."""
    return os.environ.get("EVENFLOW_DEBUG", "") not in ("", "0")
