"""Whether a scheduler may decide on this database. It checks when it starts, and every now and then while it runs (R-HA6)."""

from __future__ import annotations

from evenflow.core.settings import DEFAULT_TIMEZONE, SETTINGS, check_default_timezone
from evenflow.errors import DatabaseNotMigrated, DatabaseTooNew, WrongTimezone
from evenflow.store.db.migrate import check
from evenflow.store.db.rows import Conn
from evenflow.store.scheduling import settings

UNFIT = (DatabaseTooNew, DatabaseNotMigrated, WrongTimezone)  # what ends a scheduler; anything else may pass


class Fitness:
    """``wanted_timezone``: the default time zone that the configuration of this host asks for, if it asks for one."""

    def __init__(self, wanted_timezone: str | None) -> None:
        self._wanted = wanted_timezone

    def check(self, conn: Conn) -> None:
        """Raises one of ``UNFIT``: the schema was migrated past this program, or the default time zone is not what it has to be."""
        check(conn)
        found = settings.read_value(conn, DEFAULT_TIMEZONE)
        check_default_timezone(str(SETTINGS[DEFAULT_TIMEZONE].default if found is None else found), wanted=self._wanted)
