"""How a scheduler treats its database: it checks when it starts, and now and then while it runs (R-HA6), whether it may decide on
it, and reports when the database is gone.
"""

from __future__ import annotations

import threading
import time

from evenflow.core.settings import DEFAULT_TIMEZONE, SETTINGS, check_default_timezone
from evenflow.errors import DatabaseNotMigrated, DatabaseTooNew, WrongTimezone
from evenflow.scheduler import observations as seen
from evenflow.store.db.failures import is_gone
from evenflow.store.db.migrate import check
from evenflow.store.db.rows import Conn
from evenflow.store.scheduling import incarnation
from evenflow.telemetry.observing import observe

UNFIT = (DatabaseTooNew, DatabaseNotMigrated, WrongTimezone)  # what ends a scheduler; anything else may pass


class Fitness:
    """``wanted_timezone``: the default time zone that the configuration of this host asks for, if it asks for one."""

    def __init__(self, wanted_timezone: str | None) -> None:
        self._wanted = wanted_timezone

    def check(self, conn: Conn) -> None:
        """Raises one of ``UNFIT``: the schema was migrated past this program, or the default time zone is wrong."""
        check(conn)
        found = incarnation.read_setting(conn, DEFAULT_TIMEZONE)
        check_default_timezone(str(SETTINGS[DEFAULT_TIMEZONE].default if found is None else found), wanted=self._wanted)


class Outage:
    """A line when the database goes, however many threads notice, and one when it is back. For threads that try again every
    ``retry_s``.
    """

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
