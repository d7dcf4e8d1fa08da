"""Callbacks of authors: a function that gets the context, or several; a notifier is a callback, too. As in Airflow 3, a deadline is
a time at which a callback is called unless the run has ended.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any, ClassVar

from evenflow.core.limits import MAX_AVERAGED_RUNS, MAX_CALLBACKS, MAX_DEADLINES, MAX_NAME_CHARS, MAX_RUN_SECONDS
from evenflow.core.model import DeadlineSpec
from evenflow.errors import BadSetting
from evenflow.sdk.default_timezone import default_timezone

Function = Callable[..., Any]
Functions = Function | Sequence[Function] | None

WANTED = f"a function that takes the context, or a list of at most {MAX_CALLBACKS} such functions"


def checked_functions(value: Any) -> tuple[Function, ...] | None:
    """Returns functions as a tuple; None when ``value`` is not :data:`WANTED`."""
    found = tuple(value) if isinstance(value, (list, tuple)) else () if value is None else (value,)
    return found if len(found) <= MAX_CALLBACKS and all(callable(function) for function in found) else None


class _WithArguments:
    """A function, or the class of a notifier, with its keyword arguments."""

    def __init__(self, callback_callable: Callable[..., Any], kwargs: Mapping[str, Any] | None = None) -> None:
        self.callback_callable, self.kwargs = callback_callable, dict(kwargs or {})

    def __call__(self, context: dict[str, Any]) -> Any:
        if inspect.isclass(self.callback_callable):
            notifier: Any = self.callback_callable(**self.kwargs)
            return notifier(context)
        parameters = inspect.signature(self.callback_callable).parameters
        takes_it = "context" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        return self.callback_callable(**self.kwargs, **({"context": context} if takes_it else {}))


class SyncCallback(_WithArguments):
    """``SyncCallback(function, kwargs={...})`` calls the function with these arguments, and with ``context`` if it takes one."""


class AsyncCallback(_WithArguments):
    """The same for an ``async def``, as in Airflow. Both run on a worker, in a separate process."""


def call(function: Function, context: dict[str, Any]) -> None:
    """Calls the function to its end, also an ``async def``."""
    result = function(context)
    if inspect.isawaitable(result):
        import asyncio

        async def awaited() -> None:
            await result

        asyncio.run(awaited())


@dataclass(frozen=True, slots=True)
class DeadlineStart:
    """The moment from which the interval of a deadline counts."""

    kind: str
    at: str | None = None
    timezone: str = "UTC"
    runs: int = 0
    least: int = 0


class DeadlineReference:
    """The available references. A run without a logical date has no deadline by it."""

    DAGRUN_QUEUED_AT: ClassVar[DeadlineStart] = DeadlineStart("queued_at")
    DAGRUN_LOGICAL_DATE: ClassVar[DeadlineStart] = DeadlineStart("logical_date")

    @staticmethod
    def FIXED_DATETIME(moment: datetime) -> DeadlineStart:
        if not isinstance(moment, datetime) or moment.tzinfo is None:
            raise BadSetting(f"DeadlineReference.FIXED_DATETIME needs a datetime with a time zone, not {moment!r}.")
        return DeadlineStart("fixed_datetime", moment.isoformat())

    @staticmethod
    def AVERAGE_RUNTIME(max_runs: int = 10, min_runs: int | None = None) -> DeadlineStart:
        """After a run is asked for, as long as the last successful ones took on average: at most ``max_runs``. With fewer than
        ``min_runs``, by default as many, there is no deadline.
        """
        least = max_runs if min_runs is None else min_runs
        if not 1 <= least <= max_runs <= MAX_AVERAGED_RUNS:
            asked = f"max_runs={max_runs}, min_runs={least}"
            raise BadSetting(
                f"DeadlineReference.AVERAGE_RUNTIME takes 1 <= min_runs <= max_runs <= {MAX_AVERAGED_RUNS}, not {asked}."
            )
        return DeadlineStart("average_runtime", runs=max_runs, least=least)

    @staticmethod
    def TIME_OF_DAY(at: str | time, timezone: str | None = None) -> DeadlineStart:
        """The first such time after the run was due, by default in the default time zone."""
        from zoneinfo import ZoneInfo

        timezone = timezone or default_timezone()

        try:
            moment = time.fromisoformat(at) if isinstance(at, str) else at
            ZoneInfo(timezone)
        except (ValueError, KeyError, OSError) as error:
            raise BadSetting(f"A deadline at {at!r} in {timezone!r}: {error}. Give a time such as '07:00' and a zone.") from None
        if moment.tzinfo is not None:
            raise BadSetting(f"A deadline at {at!r}: give the time zone by itself, e.g. timezone='Europe/Berlin'.")
        return DeadlineStart("time_of_day", moment.isoformat(timespec="seconds"), timezone)


class DeadlineAlert:
    """A run should end ``interval`` (a timedelta) after ``reference``; if it has not, ``callback``, one function or several, is
    called. A missed deadline shows with the run either way. The run continues.
    """

    def __init__(
        self,
        reference: DeadlineStart,
        interval: timedelta = timedelta(0),
        callback: Functions = None,
        *,
        name: str | None = None,
    ) -> None:
        if not isinstance(reference, DeadlineStart):
            raise BadSetting(f"DeadlineAlert: reference must be one of DeadlineReference, not {reference!r}.")
        if not isinstance(interval, timedelta) or abs(interval.total_seconds()) > MAX_RUN_SECONDS:
            raise BadSetting(
                f"DeadlineAlert: interval must be a timedelta of at most {MAX_RUN_SECONDS:,} seconds, not {interval!r}."
            )
        functions = checked_functions(callback)
        if functions is None:
            raise BadSetting(f"DeadlineAlert: callback must be {WANTED}, not {callback!r}.")
        self.reference, self.interval, self.functions = reference, interval, functions
        self.name = name or self._described()
        if not isinstance(self.name, str) or len(self.name) > MAX_NAME_CHARS:
            raise BadSetting(f"DeadlineAlert: name must be a string of at most {MAX_NAME_CHARS} characters.")

    @classmethod
    def done_by(
        cls, at: str | time, timezone: str | None = None, callback: Functions = None, *, name: str | None = None
    ) -> DeadlineAlert:
        """A deadline at a time of day, e.g. ``DeadlineAlert.done_by("07:00", "Europe/Berlin")``: the first after the run
        was due.
        """
        return cls(DeadlineReference.TIME_OF_DAY(at, timezone), callback=callback, name=name)

    def to_spec(self) -> DeadlineSpec:
        return DeadlineSpec(
            name=self.name,
            reference=self.reference.kind,
            interval=self.interval.total_seconds(),
            at=self.reference.at,
            timezone=self.reference.timezone,
            runs=self.reference.runs,
            least=self.reference.least,
            callbacks=len(self.functions),
        )

    def _described(self) -> str:
        match self.reference.kind:
            case "time_of_day":
                where = f"{(self.reference.at or '').removesuffix(':00')} {self.reference.timezone}"
            case "fixed_datetime":
                where = self.reference.at or ""
            case kind:
                where = kind
        return f"{self.interval} after {where}" if self.interval else f"by {where}"


def checked_deadlines(value: Any) -> tuple[DeadlineAlert, ...] | None:
    """Returns ``deadline=`` as a tuple; None when it is neither an alert nor a list of alerts."""
    given = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    return given if len(given) <= MAX_DEADLINES and all(isinstance(alert, DeadlineAlert) for alert in given) else None
