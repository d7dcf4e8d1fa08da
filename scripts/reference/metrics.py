"""Every metric, from its declaration."""

from __future__ import annotations

from evenflow.core.meter import BOUNDS_S, Metric, MetricKind
from evenflow.core.metrics import EVERY, METRICS
from evenflow.core.service import ServiceKind
from scripts.reference.markdown import table

_INTRODUCTION = f"""\
Each is declared once, in `core/metrics.py`; Prometheus and StatsD show the same. What a service tells of itself has the labels
`kind` and `name`, by which you know the service, beside its own. [How to watch Evenflow](../how-to/metrics.md) says what to look at
first.

A counter ends in `_total` in Prometheus. A histogram has `_bucket`, `_sum` and `_count` there, with the bounds
{", ".join(f"{bound:g}" for bound in BOUNDS_S)} seconds. In StatsD it is `.count` and `.sum` (counters), `.p50` and `.p99`
(gauges)."""

_SECTIONS = (
    (
        "The system",
        "Every API server reads these from the database when it is asked, and all read the same: take the maximum of several.",
        frozenset(),
    ),
    ("Every service", "", EVERY),
    ("Schedulers", "Each tells its own share.", frozenset({ServiceKind.SCHEDULER})),
    ("Workers", "", frozenset({ServiceKind.WORKER})),
    ("Triggerers", "", frozenset({ServiceKind.TRIGGERER})),
    ("Processors", "", frozenset({ServiceKind.PROCESSOR})),
    ("API servers", "", frozenset({ServiceKind.API})),
)


def page() -> str:
    parts = ["# Metrics", _INTRODUCTION]
    for title, text, tellers in _SECTIONS:
        rows = [_row(metric) for metric in METRICS if metric.tellers == tellers]
        parts += [f"## {title}", *([text] if text else []), table(("metric", "type", "labels", "meaning"), rows)]
    return "\n\n".join(parts)


def _row(metric: Metric) -> tuple[str, ...]:
    suffix = "_total" if metric.kind is MetricKind.COUNTER else ""
    return f"`{metric.name}{suffix}`", str(metric.kind), ", ".join(f"`{label}`" for label in metric.labels), metric.meaning
