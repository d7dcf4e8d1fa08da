"""What a scheduler tells of its starts."""

from __future__ import annotations

from evenflow.core.meter import Meter
from evenflow.core.metrics import METRICS, STARTABLE_SECONDS, STARTS
from evenflow.core.service import ServiceKind
from evenflow.scheduler.recent_starts import RecentStarts


def test_starts_of_the_last_minute_and_how_late_nearly_all_of_them_were() -> None:
    """R-ST10: what was a minute ago counts no more, and nothing is late when nothing has started."""
    now = 1_000.0
    meter = Meter(ServiceKind.SCHEDULER, "s", METRICS)

    def start(count: int, late_s: float) -> None:
        meter.count(STARTS, count)
        meter.observe(STARTABLE_SECONDS, late_s, count=count)

    start(50, 3.0)  # before it was asked for the first time
    recent = RecentStarts(meter, lambda: now)
    assert recent.told() == {"starts": 0, "late_s": None}
    start(95, 0.003)
    start(5, 20.0)
    now += 3
    assert recent.told() == {"starts": 100, "late_s": 0.005}
    start(1, 20.0)
    for _ in range(19):
        now += 3
        assert recent.told() == {"starts": 101, "late_s": 10.0}
    now += 3
    assert recent.told() == {"starts": 1, "late_s": 10.0}
    now += 3
    assert recent.told() == {"starts": 0, "late_s": None}
