"""The next runs of a schedule that is code, such as a timetable of Airflow that an author wrote.

Only a processor runs authors' code. It computes some runs ahead, and they are stored with the DAG; schedulers make runs from them,
and ask for new ones before they are used up. Each run is later than the one before, so what is left of a forecast is what comes
after the last scheduled run, however old it is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

from evenflow.core.limits import FIRST_YEAR, FORECAST_CHARS, FORECAST_LOW, FORECAST_RUNS, LAST_YEAR
from evenflow.errors import BadSchedule


class TimetableRun(NamedTuple):
    """A scheduled run to be created at ``run_after``; all times in UTC."""

    logical_date: datetime
    data_interval_start: datetime
    data_interval_end: datetime
    run_after: datetime


class Forecast(NamedTuple):
    """The earliest run first. ``is_whole``: no run is known to follow."""

    runs: tuple[TimetableRun, ...] = ()
    is_whole: bool = False

    def left(self, after: datetime | None) -> Sequence[TimetableRun]:
        """Returns the runs after the logical date of the last scheduled run."""
        return self.runs if after is None else [run for run in self.runs if run.logical_date > after]

    def is_low(self, after: datetime | None, catchup: bool, now: datetime) -> bool:
        """Returns whether a processor has to compute more. Without ``catchup`` runs that have passed do not count."""
        left = self.left(after)
        return not self.is_whole and sum(catchup or run.run_after > now for run in left) < FORECAST_LOW

    def next(self, after: datetime | None, end_date: datetime | None, catchup: bool, now: datetime) -> TimetableRun | None:
        """Returns the next run. Without ``catchup`` it is the newest of those that have passed; if all have, a newer one may have
        passed that is not computed yet, and there is none until then.
        """
        left = [run for run in self.left(after) if end_date is None or run.logical_date <= end_date]
        passed = 0 if catchup else sum(run.run_after <= now for run in left)
        if passed and passed == len(left) and not self.is_whole and left[-1] is self.runs[-1]:
            return None
        return next(iter(left[max(passed - 1, 0) :]), None)

    def to_json(self) -> str:
        runs = [[each.isoformat() for each in run[1:]] for run in self.runs]
        return json.dumps({"runs": runs, "is_whole": self.is_whole}, separators=(",", ":"))

    @classmethod
    def read(cls, text: str) -> Forecast:
        """Returns the forecast in the form of :meth:`to_json`. Raises :class:`BadSchedule` for anything else."""
        if len(text) > FORECAST_CHARS:
            raise BadSchedule(f"The next runs of its timetable are {len(text):,} characters (limit {FORECAST_CHARS:,}).")
        try:
            raw = json.loads(text)
            runs = [[datetime.fromisoformat(each).astimezone(UTC) for each in run] for run in raw["runs"]]
            found = cls(tuple(TimetableRun(start, start, end, run_after) for start, end, run_after in runs), bool(raw["is_whole"]))
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise BadSchedule(f"The next runs of its timetable cannot be read: {error}.") from None
        found._check()
        return found

    def _check(self) -> None:
        if len(self.runs) > FORECAST_RUNS:
            raise BadSchedule(f"The timetable made {len(self.runs):,} runs at once (limit {FORECAST_RUNS}).")
        for run in self.runs:
            for instant in run[1:]:
                if not FIRST_YEAR <= instant.year <= LAST_YEAR:
                    raise BadSchedule(f"The timetable made a run with the date {instant.isoformat()}, which is out of range.")
            if run.data_interval_end < run.data_interval_start:
                raise BadSchedule(f"The timetable made a data interval that ends before its begin, {run.logical_date.isoformat()}.")
        for run, following in pairwise(self.runs):
            check_follows(run, following)


def check_follows(run: TimetableRun, following: TimetableRun) -> None:
    """Raises :class:`BadSchedule` unless a run is for a later date than the one before it."""
    if following.logical_date <= run.logical_date:
        raise BadSchedule(
            f"The timetable made a run for {following.logical_date.isoformat()} after the one for {run.logical_date.isoformat()}. "
            "Each data interval has to begin later than the one before."
        )
