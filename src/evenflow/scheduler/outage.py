"""What a scheduler says of a database that is gone: a line when it goes, however many threads notice, and one when it is back."""

from __future__ import annotations

import threading
import time

from evenflow.scheduler import observations as seen
from evenflow.store.db.failures import is_gone
from evenflow.telemetry.observing import observe


class Outage:
    """For threads that try again every ``retry_s``."""

    def __init__(self, retry_s: float) -> None:
        self._retry_s = retry_s
        self._lock = threading.Lock()
        self._since: float | None = None

    def note(self, what: str, error: Exception) -> None:
        """The thread ``what`` has to begin again. A statement that failed by itself is not an outage, and is told each time."""
        reason = " ".join(str(error).split())
        if not is_gone(error):
            observe(seen.transaction_broken_off(what, self._retry_s, reason))
            return
        with self._lock:
            if self._since is not None:
                return
            self._since = time.monotonic()
        observe(seen.database_gone(reason))

    def is_over(self) -> None:
        """There is a connection."""
        with self._lock:
            since, self._since = self._since, None
        if since is not None:
            observe(seen.database_back(round(time.monotonic() - since, 1)))
