"""The settings that decide: they live in the database, so that all schedulers have the same. Each by name, with its default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evenflow.errors import BadValue

RETENTION_DAYS = "retention_days"

_WORDS = {bool: "true or false", int: "a whole number, 0 or more"}


@dataclass(frozen=True, slots=True)
class Setting:
    """``default`` holds where nobody has set it, and its type is that of all values."""

    name: str
    default: bool | int
    meaning: str

    @property
    def kind(self) -> str:
        """What a value is, for people."""
        return _WORDS[type(self.default)]

    def check(self, value: Any) -> None:
        """Raises :class:`BadValue` for what is no value of it."""
        if type(value) is not type(self.default) or value < 0:
            example = f"evenflow settings set {self.name} {str(self.default).lower()}"
            raise BadValue(f"The setting {self.name} is {self.kind}, not {value!r}. Type for example: {example}")


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting(
            "fast_follow",
            True,
            "Whether what becomes ready may start in the transaction that makes it ready; else the sweep of each second starts it.",
        ),
        Setting(
            RETENTION_DAYS,
            0,
            "After how many days runs that have ended are deleted, with their results, history and logs; 0: never.",
        ),
    )
}


def find_setting(name: str) -> Setting:
    """Raises :class:`BadValue` for a name that is none."""
    found = SETTINGS.get(name)
    if found is None:
        raise BadValue(f"There is no setting {name!r}; there is: {', '.join(SETTINGS)}. To see them, type: evenflow settings list")
    return found
