"""The settings of a fleet: its bounds, when it grows and shrinks, and which tasks it must not disturb."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from evenflow.core.likeness import did_you_mean
from evenflow.core.limits import MAX_DRAIN_S, MOST_SLOTS
from evenflow.errors import BadValue

MOST_REPLICAS = 10_000  # of a fleet: a decision looks at each of its workers
LONGEST_WINDOW_S = 3_600.0  # its looks are in memory, one a second
MOST_PATTERNS = 100  # of labels: each is compared with each label of the running tries
MOST_WEIGHT = 1_000.0  # of a label: a task of a minute then weighs as much as one of half an hour


class Algorithm(StrEnum):
    """How the needed slots are computed."""

    TARGET_LOAD = "target-load"  # one for each try that runs or waits
    LATENCY = "latency"  # enough for waiting tries to begin within a time


class Foresees(StrEnum):
    """What a forecast is based on."""

    TIMERS = "timers"  # what is due by then: retries, reschedules, ends of waits
    GRAPH = "graph"  # also the tasks behind running ones that will have ended


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPolicy:
    """Times are in seconds, loads are needed slots divided by existing slots, rates are in replicas a minute.

    ``protect`` and ``weights`` name labels by patterns: ``tag:NAME`` is a tag of a DAG, ``DAG`` its name, ``DAG.TASK`` a task's.
    """

    min: int = 0
    max: int = 8
    slots: int = 16  # of one worker
    algorithm: Algorithm = Algorithm.TARGET_LOAD
    target_load: float = 0.8
    up_load: float = 0.95  # A
    up_after: float = 5.0  # B
    down_load: float = 0.5  # X
    down_after: float = 120.0  # Y
    up_rate: int = 60
    down_rate: int = 20
    wait: float = 10.0  # latency: the longest that a task should wait for a worker
    forecast: float = 0.0  # how far ahead it looks for coming tries; 0: not at all
    foresees: Foresees = Foresees.GRAPH  # the basis of the forecast
    drain: float = 3_600.0  # how long a worker that is to go may finish its tries
    protect: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises :class:`BadValue` for values that do not fit together."""
        for name, least, most in _BOUNDS:
            value = getattr(self, name)
            if not least <= value <= most:
                raise BadValue(f"The {name} of a fleet is a number from {least:,} to {most:,}, not {value!r}.")
        if self.min > self.max:
            raise BadValue(f"A fleet cannot have {self.min:,} workers at least and {self.max:,} at most.")
        if not self.down_load < self.target_load <= self.up_load:
            raise BadValue(
                f"Of a fleet down_load < target_load <= up_load, or it swings; here they are {self.down_load:g}, "
                f"{self.target_load:g} and {self.up_load:g}."
            )
        if len(self.protect) + len(self.weights) > MOST_PATTERNS:
            raise BadValue(f"A fleet protects and weighs {MOST_PATTERNS} labels at most.")
        if bad := [name for name, weight in self.weights.items() if not 0.0 <= weight <= MOST_WEIGHT]:
            raise BadValue(f"The weight of a label is a number from 0 to {MOST_WEIGHT:,.0f}; that of {bad[0]!r} is not.")

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> ScalingPolicy:
        """Reads what :meth:`told` returns. Raises :class:`BadValue` for an unknown name or a wrong value."""
        known = {one.name: one for one in fields(cls)}
        values: dict[str, Any] = {}
        for name, value in told.items():
            if name not in known:
                raise BadValue(f"A fleet has no option {name!r}; it has: {', '.join(known)}.{did_you_mean(name, known)}")
            try:
                values[name] = _READERS[name](value)
            except (ValueError, TypeError, OverflowError):
                raise BadValue(f"The {name} of a fleet cannot be {value!r}.{_CHOICES.get(name, '')}") from None
        return cls(**values)

    def told(self) -> dict[str, Any]:
        """Returns the values that differ from the defaults, for JSON."""
        plain = ScalingPolicy()
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        changed = {name: value for name, value in values.items() if value != getattr(plain, name)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in changed.items()}


def _whole(value: Any) -> int:
    """Raises :class:`TypeError` for a number with a fraction, and for a boolean."""
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise TypeError
    return int(value)


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) and name for name in value):
        raise TypeError
    return tuple(value)


def _weights(value: Any) -> dict[str, float]:
    return {str(name): float(weight) for name, weight in dict(value).items()}


_WHOLE = ("min", "max", "slots", "up_rate", "down_rate")
_TIMES = ("up_after", "down_after", "wait", "forecast", "drain")
_READERS: dict[str, Any] = {
    **{one.name: float for one in fields(ScalingPolicy)},
    **dict.fromkeys(_WHOLE, _whole),
    "algorithm": Algorithm,
    "foresees": Foresees,
    "protect": _names,
    "weights": _weights,
}
_CHOICES = {
    **dict.fromkeys(_TIMES, " It is a number of seconds, such as 10."),
    **dict.fromkeys(_WHOLE, " It is a whole number, such as 4."),
    "algorithm": f" It is one of: {', '.join(Algorithm)}.",
    "foresees": f" It is one of: {', '.join(Foresees)}.",
}
_BOUNDS: tuple[tuple[str, float, float], ...] = (
    ("min", 0, MOST_REPLICAS),
    ("max", 0, MOST_REPLICAS),
    ("slots", 1, MOST_SLOTS),
    ("target_load", 0.01, 1.0),
    ("up_load", 0.01, 100.0),
    ("up_after", 0.0, LONGEST_WINDOW_S),
    ("down_load", 0.0, 1.0),
    ("down_after", 0.0, LONGEST_WINDOW_S),
    ("up_rate", 1, MOST_REPLICAS),
    ("down_rate", 1, MOST_REPLICAS),
    ("wait", 0.1, LONGEST_WINDOW_S),
    ("forecast", 0.0, LONGEST_WINDOW_S),
    ("drain", 0.0, float(MAX_DRAIN_S)),
)
