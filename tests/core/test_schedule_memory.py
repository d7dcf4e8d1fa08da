"""What was scheduled is remembered whatever else happens: the rules alone, against a naive model. tests/scheduler has the same on a
database.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.core.model import DagSpec
from evenflow.core.timetable import Past, due_runs, next_of
from tests.core.naive_schedule import BEGIN, ROOM, Plan, Story, changes, plans, steps


class InMemory:
    """The rules of :mod:`evenflow.core.timetable` with the fewest lines around them."""

    def __init__(self) -> None:
        self.past = Past(known_since=BEGIN)
        self.runs: dict[datetime, tuple[str, bool]] = {}
        self.spec: DagSpec | None = None
        self.is_paused = False
        self.due: datetime | None = None

    def set_now(self, now: datetime) -> None:
        self.now = now

    def parse(self, plan: Plan) -> None:
        self.spec = plan.spec("d")
        self._set_due()

    def retire(self) -> None:
        self.spec = None

    def pause(self, is_paused: bool) -> None:
        self.is_paused = is_paused
        self._set_due()

    def look(self) -> list[datetime]:
        waiting = [date for date, (run_type, ended) in self.runs.items() if run_type == "scheduled" and not ended]
        if self.spec is None or self.is_paused or self.due is None or self.due > self.now or len(waiting) >= ROOM:
            return []
        if self.spec.schedule.kind == "continuous" and waiting:
            return []
        runs, following = due_runs(self.spec, self.past, self.now, ROOM - len(waiting))
        made = [run.logical_date for run in runs if run.logical_date not in self.runs]
        self.runs |= dict.fromkeys(made, ("scheduled", False))
        if runs:
            end = max(runs[-1].data_interval_end, self.past.interval_end or runs[-1].data_interval_end)
            self.past = self.past._replace(logical_date=runs[-1].logical_date, interval_end=end)
        self.due = following and following.run_after
        return made

    def take(self, dates: list[datetime], run_type: str) -> None:
        self.runs = {**dict.fromkeys(dates, (run_type, False)), **self.runs}

    def work(self) -> None:
        self.runs = {date: (run_type, True) for date, (run_type, _) in self.runs.items()}

    def delete(self, dates: list[datetime]) -> None:
        for date in dates:
            del self.runs[date]

    def due_at(self) -> datetime | None:
        return self.due

    def _set_due(self) -> None:
        if self.spec is not None:
            run = next_of(self.spec, self.past, self.now)
            self.due = run and run.run_after


@settings(max_examples=300, deadline=None)
@given(plans, st.lists(steps, max_size=25))
def test_no_date_is_made_twice_or_lost_or_for_ever_in_the_way(plan: Plan, happens: list[tuple[Any, ...]]) -> None:
    """R-HA20."""
    story = Story(InMemory(), plan)
    for step in happens:
        story.play(step)
    story.settle()


@settings(max_examples=200, deadline=None)
@given(plans, st.lists(st.one_of(steps, steps, changes), max_size=25))
def test_a_changed_schedule_goes_on_from_what_was_scheduled_last(plan: Plan, happens: list[tuple[Any, ...]]) -> None:
    """R-HA20."""
    story = Story(InMemory(), plan)
    for step in happens:
        story.play(step)
    story.settle()
