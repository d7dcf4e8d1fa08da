"""The settings that decide: they live in the database, so that all schedulers share them. Each has a name and a default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evenflow.core.likeness import did_you_mean
from evenflow.errors import BadValue, WrongTimezone

FAST_FOLLOW = "fast_follow"
RETENTION_DAYS = "retention_days"
AUDIT_RETENTION_DAYS = "audit_retention_days"
RETENTION_AWAITS_EXPORT = "retention_awaits_export"
DEFAULT_TIMEZONE = "default_timezone"
DIRECT_RESUME = "direct_resume"
DEFERRED_KEEP_TASK_LIMITS = "deferred_keep_task_limits"
DEFERRED_KEEP_RUN_CAP = "deferred_keep_run_cap"
DEFERRED_KEEP_EXECUTOR_SLOT = "deferred_keep_executor_slot"
FAILOVER_LOSES_COMMITS = "failover_loses_commits"
DAGS_ARE_PAUSED_AT_CREATION = "dags_are_paused_at_creation"

UTC = "UTC"

MOST = 1_000_000  # of any number: days of more than two thousand years, and far below the limit of PostgreSQL's intervals

_WORDS = {
    bool: "true or false",
    int: f"a whole number, 0 or more and at most {MOST:,}",
    str: "an IANA time zone, such as Europe/Berlin",
}


_YES, _NO = ("true", "yes", "y", "on", "1"), ("false", "no", "n", "off", "0")


@dataclass(frozen=True, slots=True)
class Setting:
    """``default`` holds while no person has set a value, and has the type of all values; text is a time zone."""

    name: str
    default: bool | int | str
    meaning: str

    @property
    def kind(self) -> str:
        """The type of a value, for people."""
        return _WORDS[type(self.default)]

    def check(self, value: Any) -> None:
        """Raises :class:`BadValue` for a value that does not fit."""
        if type(value) is not type(self.default) or (not 0 <= value <= MOST if isinstance(value, int) else not is_timezone(value)):
            hint = did_you_mean(value, timezones()) if isinstance(self.default, str) and isinstance(value, str) else ""
            example = f"evenflow settings set {self.name} {self._meant(value)}"
            raise BadValue(f"The setting {self.name} is {self.kind}, not {value!r}.{hint} Type for example: {example}")

    def _meant(self, value: Any) -> str:
        """Returns what to type: the accepted value nearest to ``value``, else the default."""
        if isinstance(self.default, str):
            return self.default
        said = str(value).lower()
        words = _YES if said in _YES else _NO if said in _NO else (str(self.default).lower(),)
        return words[0] if isinstance(self.default, bool) else str(self.default)


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting(
            FAST_FOLLOW,
            True,
            "Whether what becomes ready may start in the transaction that makes it ready; else the sweep of each second starts it.",
        ),
        Setting(
            RETENTION_DAYS,
            0,
            "After how many days runs that have ended are deleted, with their results, history and logs; 0: never.",
        ),
        Setting(
            AUDIT_RETENTION_DAYS,
            0,
            "After how many days the record of who changed what is deleted; 0: never.",
        ),
        Setting(
            RETENTION_AWAITS_EXPORT,
            False,
            "Whether only that goes by age which the history pipeline has exported; before its first export nothing goes then.",
        ),
        Setting(
            DEFAULT_TIMEZONE,
            UTC,
            "The time zone of schedules, start dates and deadlines that name none. DAG files are loaded anew when it changes.",
        ),
        Setting(
            DIRECT_RESUME,
            True,
            "Whether a deferred task whose trigger fired goes straight back to a worker; else it waits for its limits again.",
        ),
        Setting(
            DEFERRED_KEEP_TASK_LIMITS,
            True,
            "Whether a deferred task still counts in max_active_tis_per_dag and max_active_tis_per_dagrun, where it says nothing.",
        ),
        Setting(
            DEFERRED_KEEP_RUN_CAP,
            False,
            "Whether a deferred task still counts in the max_active_tasks of its run, where it says nothing.",
        ),
        Setting(
            DEFERRED_KEEP_EXECUTOR_SLOT,
            False,
            "Whether a deferred task still occupies a slot of its executor, where it says nothing.",
        ),
        Setting(
            DAGS_ARE_PAUSED_AT_CREATION,
            False,
            "Whether a DAG that is seen for the first time is paused, where it says nothing.",
        ),
        Setting(
            FAILOVER_LOSES_COMMITS,
            True,
            "Whether a standby of PostgreSQL that takes over may lack the last commits, so that all in flight is sent again; false "
            "where each commit waits for it.",
        ),
    )
}


def find_setting(name: str) -> Setting:
    """Raises :class:`BadValue` for an unknown name."""
    found = SETTINGS.get(name)
    if found is None:
        hint = did_you_mean(name, SETTINGS)
        raise BadValue(
            f"There is no setting {name!r}; there is: {', '.join(SETTINGS)}.{hint} To see them, type: evenflow settings list"
        )
    return found


def is_timezone(name: str) -> bool:
    """Returns whether this host knows a time zone of that name."""
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        return False
    return True


def timezones() -> set[str]:
    """Returns the time zones that this host knows."""
    from zoneinfo import available_timezones

    return available_timezones()


def check_default_timezone(found: str, *, wanted: str | None) -> None:
    """Raises :class:`WrongTimezone` when the database's default time zone differs from this host's configuration, or is unknown to
    this host.
    """
    if wanted is not None and wanted != found:
        raise WrongTimezone(
            f"The default time zone of the database is {found}, and the configuration of this host wants {wanted}. Unset "
            "EVENFLOW_DEFAULT_TIMEZONE here (default_timezone in evenflow.toml), or type: "
            f"evenflow settings set {DEFAULT_TIMEZONE} {wanted}"
        )
    if not is_timezone(found):
        raise WrongTimezone(
            f"The default time zone of the database is {found}, which this host does not know. Install the time zones of the world "
            f"(package tzdata), or type: evenflow settings set {DEFAULT_TIMEZONE} {UTC}"
        )
