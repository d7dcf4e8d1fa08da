"""How many tries a scheduler has started lately, and how late, for people who look at the whole."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from evenflow.core.meter import Meter
from evenflow.core.metrics import STARTABLE_SECONDS, STARTS

WINDOW_S = 60.0
SHARE = 0.95  # of the starts, that were at most so late


class RecentStarts:
    """Reads a meter each time that it is asked; what was read a minute ago is what it compares with."""

    def __init__(self, meter: Meter, clock: Callable[[], float] = time.monotonic) -> None:
        self._meter, self._clock = meter, clock
        self._looks = deque([(clock(), meter.value(STARTS), meter.distribution(STARTABLE_SECONDS))])

    def told(self) -> dict[str, float | None]:
        """Returns the starts of the last minute, and how late :data:`SHARE` of them were at most, as far as buckets tell."""
        now = self._clock()
        self._looks.append((now, self._meter.value(STARTS), self._meter.distribution(STARTABLE_SECONDS)))
        while len(self._looks) > 1 and self._looks[1][0] <= now - WINDOW_S:
            self._looks.popleft()
        (_, started_before, late_before), (_, started, late) = self._looks[0], self._looks[-1]
        return {"starts": started - started_before, "late_s": (late - late_before).quantile(SHARE)}
