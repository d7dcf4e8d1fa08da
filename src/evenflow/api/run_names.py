"""The names and dates that people and tasks may give to the runs that they trigger."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from evenflow.api.refusals import Refused
from evenflow.contracts.rest.record import NAME_RULE, PATTERN
from evenflow.core.callbacks import CALLBACK_DAG
from evenflow.core.limits import MAX_NAME_CHARS

RESERVED = (
    "scheduled__",
    "backfill__",
    "asset_triggered__",
    "triggered__",
)  # a run with such a name would block the run to which Evenflow gives it


def check_run_id(run_id: str) -> None:
    """Raises :class:`Refused`. Run names are part of the paths of logs."""
    if run_id.startswith(RESERVED):
        raise Refused(
            422,
            "bad_value",
            f"Names that begin with {', '.join(RESERVED)} are for runs that Evenflow makes.",
            hint="Choose another run_id.",
        )
    if len(run_id) > MAX_NAME_CHARS or re.fullmatch(PATTERN, run_id) is None:
        raise Refused(
            422,
            "bad_value",
            f"A run_id has {NAME_RULE}, not {run_id!r:.300}.",
        )


def check_dag(dag_id: str) -> None:
    """Raises :class:`Refused` for the DAG whose runs only schedulers make."""
    if dag_id == CALLBACK_DAG:
        raise Refused(422, "bad_value", f"The runs of {CALLBACK_DAG!r} are calls of callbacks. They are made when these are due.")


def stretch_of(text: str) -> tuple[datetime, datetime] | None:
    """Returns the begin and the end (exclusive) of the day or second that ``text`` means in place of a run's name. The text is in
    UTC unless it says otherwise, like the names of scheduled runs.
    """
    try:
        begin = datetime.fromisoformat(text)
        begin = begin if begin.tzinfo else begin.replace(tzinfo=UTC)
        return begin, begin + (timedelta(days=1) if len(text) <= len("2026-01-01") else timedelta(seconds=1))
    except (ValueError, OverflowError):
        return None
