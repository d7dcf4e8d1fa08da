"""A DAG's schedule played against a naive model, which lists all ticks there could be and remembers every date.

A *story* is a first plan and what happens after it, in any order: time passes, schedulers look, runs begin and end, dates are taken
by hand or by a backfill, runs are deleted, the DAG is paused, parsed again, changed, retired. Whoever plays it (``Player``) is the
code under test; after each look the runs that it made must be those that the model names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Protocol

from hypothesis import strategies as st

from evenflow.core.model import DagSpec, Schedule, TaskSpec

HOUR = timedelta(hours=1)
INSTANT = timedelta(microseconds=1)
BASE = datetime(2026, 1, 5, tzinfo=UTC)
BEGIN = BASE + 120 * HOUR  # when the DAG is seen first
FAR = range(-200, 1_000)  # hours from BASE of which ticks are listed
ROOM = 16  # scheduled runs that may wait
KINDS = ("cron", "cron", "delta", "dates", "once", "continuous")
TASKS = (TaskSpec(task_id="a", operator="python"),)


@dataclass(frozen=True)
class Plan:
    """What the author writes; times are hours from BASE."""

    kind: str
    hours: tuple[int, ...] = (0,)  # cron: hours of the day, the last one as an expression of its own
    step: int = 1  # delta
    dates: tuple[int, ...] = ()
    trigger: bool = True
    window: int = 0
    immediately: bool = False
    start: int | None = None
    end: int | None = None
    catchup: bool = False
    version: int = 0

    def spec(self, dag_id: str) -> DagSpec:
        *first, last = self.hours
        schedule: dict[str, Any] = {"kind": self.kind}
        if self.kind == "cron":
            schedule["cron"] = f"0 {','.join(map(str, first or [last]))} * * *"
            schedule["also"] = (f"0 {last} * * *",) if first else ()
        if self.kind == "delta":
            schedule["every_s"] = self.step * 3600.0
        if self.kind == "dates":
            schedule["dates"] = tuple(at(hour).isoformat() for hour in self.dates)
        if self.kind in ("cron", "delta"):
            schedule["trigger"] = self.trigger
            if self.trigger:
                schedule |= {"window_s": self.window * 3600.0, "run_immediately": self.immediately}
        return DagSpec(
            dag_id=dag_id,
            tasks=TASKS,
            schedule=Schedule(**schedule),
            start_date=None if self.start is None else at(self.start).isoformat(),
            end_date=None if self.end is None else at(self.end).isoformat(),
            catchup=self.catchup,
            description=f"version {self.version}",
        )

    def ticks(self) -> list[datetime]:
        match self.kind:
            case "cron":
                chosen = [hour for hour in FAR if hour % 24 in self.hours]
            case "delta":
                anchor = self.start if self.start is not None else (datetime(1970, 1, 1, tzinfo=UTC) - BASE) // HOUR
                chosen = [hour for hour in FAR if (hour - anchor) % self.step == 0]
            case _:
                chosen = sorted(self.dates)
        return [at(hour) for hour in chosen]


def at(hour: int) -> datetime:
    return BASE + hour * HOUR


class Player(Protocol):
    """The code under test. All dates are logical ones."""

    def set_now(self, now: datetime) -> None: ...
    def parse(self, plan: Plan) -> None: ...
    def retire(self) -> None: ...
    def pause(self, is_paused: bool) -> None: ...
    def look(self) -> list[datetime]:
        """The scheduled runs that one look makes, in order."""
        ...

    def take(self, dates: list[datetime], run_type: str) -> None:
        """Runs of these dates, but where there is one."""
        ...

    def work(self) -> None:
        """All queued runs end."""
        ...

    def delete(self, dates: list[datetime]) -> None:
        """The runs of these dates that have ended, whoever made them."""
        ...

    def due_at(self) -> datetime | None:
        """When the next scheduled run is due."""
        ...


class NaiveSchedule:
    """Which dates one look must make, from every tick that there is."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.known_since = plan, BEGIN
        self.passed: datetime | None = None  # the last date that was made or passed over
        self.interval_end: datetime | None = None

    def due(self, now: datetime, *, live: bool) -> list[tuple[datetime, datetime]]:
        """All that is due and has not been, as (logical date, end of its interval); ``live``: a scheduled run waits or runs."""
        plan = self.plan
        start = None if plan.start is None else at(plan.start)
        end = at(plan.end if plan.end is not None else FAR.stop)
        if plan.kind == "once":
            date = start or self.known_since
            return [(date, date)] if self.passed is None and date <= min(now, end) else []
        if plan.kind == "continuous":
            begin = self.interval_end or self.passed or start or self.known_since
            begin = max(begin, self.passed + INSTANT) if self.passed else begin
            return [] if live or begin + INSTANT > now or now > end else [(begin, now)]
        found = self._of_triggers(now, start) if plan.kind == "dates" or plan.trigger else self._of_intervals(now, start)
        return [(date, until) for tick, date, until in found if until <= now and tick <= end]

    def _of_triggers(self, now: datetime, start: datetime | None) -> list[tuple[datetime, datetime, datetime]]:
        window = timedelta(hours=self.plan.window)
        ticks = self.plan.ticks()
        if self.passed is not None:
            open_ = [tick for tick in ticks if tick - window > self.passed]
        else:
            first = start or self.known_since
            if start is None and self.plan.immediately:
                first = max((tick for tick in ticks if tick <= first), default=first)
            open_ = [tick for tick in ticks if tick >= first]
        if start is not None:
            open_ = [tick for tick in open_ if tick >= start]
        if not self.plan.catchup:
            newest = max((tick for tick in ticks if tick <= now), default=BASE - 500 * HOUR)
            open_ = [tick for tick in open_ if tick >= newest]
        return [(tick, tick - window, tick) for tick in open_]

    def _of_intervals(self, now: datetime, start: datetime | None) -> list[tuple[datetime, datetime, datetime]]:
        intervals = list(pairwise(self.plan.ticks()))
        open_ = [(a, b) for a, b in intervals if (self.passed is None or a > self.passed) and (start is None or a >= start)]
        if not self.plan.catchup or (self.passed is None and start is None):
            newest = max(a for a, b in intervals if b <= now)
            open_ = [(a, b) for a, b in open_ if a >= newest]
        return [(a, a, b) for a, b in open_]


plans = st.builds(
    Plan,
    kind=st.sampled_from(KINDS),
    hours=st.lists(st.integers(0, 23), min_size=1, max_size=8, unique=True).map(tuple),
    step=st.sampled_from([1, 2, 5, 24, 60]),
    dates=st.lists(st.integers(60, 260), min_size=1, max_size=6, unique=True).map(lambda hours: tuple(sorted(hours))),
    trigger=st.booleans(),
    window=st.sampled_from([0, 0, 0, 1, 24]),
    immediately=st.booleans(),
    start=st.sampled_from([None, 20, 100, 125, 140]),
    end=st.sampled_from([None, None, None, 150, 200]),
    catchup=st.booleans(),
).map(lambda plan: plan if plan.kind in ("cron", "delta") and plan.trigger else replace(plan, window=0, immediately=False))

steps = st.one_of(
    st.tuples(st.just("pass"), st.sampled_from([0.5, 1.0, 3.0, 24.0, 50.0])),
    st.tuples(st.just("look")),
    st.tuples(st.just("work")),
    st.tuples(st.just("take"), st.sampled_from(["manual", "backfill"]), st.integers(-30, 10), st.sampled_from([1, 3, 20])),
    st.tuples(st.just("delete"), st.sampled_from(["all", "newest", "oldest"])),
    st.tuples(st.just("pause"), st.booleans()),
    st.tuples(st.just("parse")),
    st.tuples(st.just("retire")),
)
changes = st.tuples(st.just("change"), plans)


class Story:
    """Plays steps on a player and the model, and compares them."""

    def __init__(self, player: Player, plan: Plan) -> None:
        self.player, self.model = player, NaiveSchedule(plan)
        self.now, self.paused, self.retired, self.changed = BEGIN, False, False, False
        self.runs: dict[datetime, tuple[str, bool]] = {}  # what there is: the type, and whether it has ended
        self.made: list[datetime] = []  # every date that was ever scheduled
        self.taken: set[datetime] = set()  # every date that ever had another run
        player.set_now(self.now)
        player.parse(plan)

    def play(self, step: tuple[Any, ...]) -> None:
        match step:
            case ("pass", hours):
                self.now += hours * HOUR
                self.player.set_now(self.now)
            case ("look",):
                self.look()
            case ("work",):
                self.player.work()
                self.runs = {date: (run_type, True) for date, (run_type, _) in self.runs.items()}
            case ("take", run_type, first, count):
                self._take(run_type, first, count)
            case ("delete", which):
                ended = sorted(date for date, (_, has_ended) in self.runs.items() if has_ended)
                chosen = {"all": ended, "newest": ended[-1:], "oldest": ended[:1]}[which]
                self.player.delete(chosen)
                for date in chosen:
                    del self.runs[date]
            case ("pause", is_paused):
                self.paused = is_paused
                self.player.pause(is_paused)
            case ("parse",):
                self.retired = False
                self.model.plan = replace(self.model.plan, version=self.model.plan.version + 1)
                self.player.parse(self.model.plan)
            case ("change", plan):
                self.retired, self.changed = False, True
                self.model.plan = replace(plan, version=self.model.plan.version + 1)
                self.player.parse(self.model.plan)
            case ("retire",):
                self.retired = True
                self.player.retire()

    def look(self) -> bool:
        """Whether dates were made or passed over."""
        scheduled = [has_ended for run_type, has_ended in self.runs.values() if run_type == "scheduled"]
        due = [] if self.paused or self.retired else self.model.due(self.now, live=False in scheduled)
        served = due[: ROOM - scheduled.count(False)]
        expected = [date for date, _ in served if date not in self.runs]
        made = self.player.look()
        assert made == expected, (self.model.plan, self.now)
        for date in made:
            assert not self.made or date > self.made[-1], "no date twice, and always forward"
            self.made.append(date)
            self.runs[date] = ("scheduled", False)
        if served:
            self.model.passed = served[-1][0]
            self.model.interval_end = max(served[-1][1], self.model.interval_end or served[-1][1])
        return bool(served)

    def settle(self) -> None:
        """Everything goes on until nothing is due: no date may be in the way for ever, and none lost."""
        self.play(("pause", False))
        if self.retired:
            self.play(("parse",))
        for _ in range(100):
            self.play(("work",))
            if not self.look() or self.model.plan.kind == "continuous":
                break
        else:
            raise AssertionError("a date is in the way")
        due_at = self.player.due_at()
        assert due_at is None or due_at > self.now or self.model.plan.kind == "continuous"
        if self.model.plan.catchup and not self.changed:
            fresh = NaiveSchedule(self.model.plan)
            if self.model.plan.start is None and not (self.model.plan.trigger or self.model.plan.kind == "dates"):
                return  # an interval without start_date begins with the newest at the first look
            if self.model.plan.kind in ("cron", "delta", "dates"):
                wanted = {date for date, _ in fresh.due(self.now, live=False)}
                assert wanted <= {*self.made, *self.taken}, "no date is lost"

    def _take(self, run_type: str, first: int, count: int) -> None:
        """Dates of the schedule, as a backfill names them, around now."""
        ticks = self.model.plan.ticks() or [BASE]
        near = min(range(len(ticks)), key=lambda i: abs(ticks[i] - self.now))
        window = timedelta(hours=self.model.plan.window)
        dates = [tick - window for tick in ticks[max(0, near + first) : max(0, near + first + count)]]
        self.player.take(dates, run_type)
        for date in dates:
            if date not in self.runs:
                self.runs[date] = (run_type, False)
                self.taken.add(date)
