"""Every line that services log, from the constructors of what they observe."""

from __future__ import annotations

from importlib import import_module

from evenflow.core.meter import MetricKind
from evenflow.core.observation import FACTS, TRACE, LogLevel, Observable
from scripts.reference.markdown import table

_INTRODUCTION = """\
Each is declared once, in `observations.py` of who observes it. With `EVENFLOW_LOG_FORMAT=json` a line has the sentence as `event`,
the name as `fact`, the fields by their names, and `level`, `logger`, `timestamp`; `exception` is a traceback. A sentence never
changes from line to line, so alerts may look for the name. On a terminal the `reason` follows the sentence, and then come the other
fields. Where a line counts in [a metric](metrics.md), that is told here. What libraries log has no `fact`."""

OBSERVERS = {
    "runtime": ("Every process of a service", "observations"),
    "telemetry": ("Health and metrics", "observing"),
    "scheduler": ("Schedulers", "observations"),
    "api": ("API servers", "observations"),
    "membership": ("Workers, processors and triggerers", "observations"),
    "worker": ("Workers", "observations"),
    "triggerer": ("Triggerers", "observations"),
    "control": ("Autoscalers and launchers", "service"),
    "launcher": ("Launchers", "observations"),
    "connect_server": ("Spark Connect servers", "observations"),
    "autoscaler": ("Autoscalers", "observations"),
    "processor": ("Processors", "observations"),
}


def declared(observer: str) -> list[Observable]:
    """What it observes, in the order in which that stands there."""
    import_module(f"evenflow.{observer}.{OBSERVERS[observer][1]}")
    return [fact for fact in FACTS if fact.observer == f"evenflow.{observer}"]


def page() -> str:
    parts = ["# What services log", _INTRODUCTION]
    for observer, (title, _) in OBSERVERS.items():
        rows = [_row(fact) for fact in declared(observer) if fact.level is not LogLevel.SILENT]
        parts += [f"## {title}", f"Logger `evenflow.{observer}`.", table(("fact", "level", "sentence", "fields", "metric"), rows)]
    return "\n\n".join(parts)


def _row(fact: Observable) -> tuple[str, ...]:
    fields = ", ".join(f"`{'exception' if name == TRACE else name}`" for name in fact.fields)
    counted = ", ".join(f"`{each.name}{'_total' * (each.kind is MetricKind.COUNTER)}`" for each, _, _ in fact.counts)
    return f"`{fact.name}`", fact.level.name.lower(), fact.sentence, fields, counted
