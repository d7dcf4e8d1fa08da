"""The facts that services observe. Each package declares its facts as constructors: a sentence, a level, and what the fact counts.

A constructor is a function without a body whose parameters are the fields. Log and meter only interpret its observations, and the
reference page is made from the same declarations. A sentence is constant, so that equal lines are found and counted; what varies is
in the fields. The field ``trace`` is an exception whose traceback is shown. No field may hold a secret.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from inspect import signature
from typing import ParamSpec

from evenflow.core.meter import Meter, Metric, MetricKind

P = ParamSpec("P")
Constructor = Callable[P, "Observation"]
CountedMetric = Metric | tuple[Metric, str]  # counts 1, or the value of this field; labels are the fields of their names

TRACE = "trace"


class LogLevel(IntEnum):
    """The numbers are those of the standard library. A silent observation is only counted."""

    SILENT = 0
    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40


@dataclass(frozen=True, slots=True, eq=False)
class Observable:
    """The declaration of a fact. ``observer`` is the package that declares it, whose logger logs it."""

    observer: str
    name: str
    level: LogLevel
    sentence: str
    fields: dict[str, str]  # their types, as written
    counts: tuple[tuple[Metric, int | None, tuple[int, ...]], ...]  # positions of the amount and the labels among the fields


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """An observation of a fact. Its text is one line, the reason first, without the traceback."""

    fact: Observable
    values: tuple[object, ...]

    @property
    def fields(self) -> dict[str, object]:
        return {name: value for name, value in zip(self.fact.fields, self.values, strict=True) if name != TRACE}

    @property
    def trace(self) -> BaseException | None:
        values = zip(self.fact.fields, self.values, strict=True)
        return next((value for name, value in values if name == TRACE and isinstance(value, BaseException)), None)

    def __str__(self) -> str:
        reason = f": {fields.pop('reason')}" if "reason" in (fields := self.fields) else ""
        return " ".join([f"{self.fact.sentence}{reason}", *(f"{name}={_quoted(value)}" for name, value in fields.items())])

    def count(self, meter: Meter) -> None:
        """Counts the metrics that the fact names."""
        for metric, amount, labels in self.fact.counts:
            by = 1.0 if amount is None else float(self.values[amount])  # type: ignore[arg-type]
            told = meter.observe if metric.kind is MetricKind.HISTOGRAM else meter.count
            told(metric, by, *(str(self.values[label]) for label in labels))


def _quoted(value: object) -> str:
    text = str(value)
    return text if text.isprintable() and " " not in text else repr(text)


FACTS: list[Observable] = []


def _declare(level: LogLevel, sentence: str, *counted: CountedMetric) -> Callable[[Callable[P, None]], Constructor[P]]:
    def declare(declared: Callable[P, None]) -> Constructor[P]:
        fields = {name: str(field.annotation) for name, field in signature(declared).parameters.items()}
        names = list(fields)
        counts = [(each, None) if isinstance(each, Metric) else (each[0], names.index(each[1])) for each in counted]
        places = tuple((metric, amount, tuple(map(names.index, metric.labels))) for metric, amount in counts)
        fact = Observable(declared.__module__.rpartition(".")[0], declared.__name__, level, sentence, fields, places)
        FACTS.append(fact)

        def construct(*args: P.args, **kwargs: P.kwargs) -> Observation:
            return Observation(fact, (*args, *(kwargs[name] for name in names[len(args) :])))

        return construct

    return declare


def silent(*counted: CountedMetric) -> Callable[[Callable[P, None]], Constructor[P]]:
    return _declare(LogLevel.SILENT, "", *counted)


debug, info = partial(_declare, LogLevel.DEBUG), partial(_declare, LogLevel.INFO)
warning, error = partial(_declare, LogLevel.WARNING), partial(_declare, LogLevel.ERROR)
