"""What all records of REST have in common. Times are UTC, durations seconds.

A client may be older than its API: it ignores fields that it does not know, and takes a word that is new to it (a state, a kind) as
it is. Requests are read the other way round: unknown fields and words in them are refused.

A field with a title is a column of lists: the command line shows these, in the order of the record.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints
from pydantic.json_schema import SkipJsonSchema

from evenflow.core import limits
from evenflow.core.limits import FIRST_YEAR, LAST_YEAR
from evenflow.core.people.roles import Role
from evenflow.core.service_states import ObjectKind, ServiceState
from evenflow.core.states import RunState, TaskState

T = TypeVar("T")

PATTERN = r"^[^/\s\x00-\x1f]+( [^/\s\x00-\x1f]+)*$"
NAME_RULE = f"1 to {limits.MAX_NAME_CHARS} characters, no slash, and no space but single ones inside"


def checked_instant(instant: datetime) -> datetime:
    """Raises :class:`ValueError` for a time without an offset, or one that is too far away for calculations."""
    if instant.tzinfo is None or not FIRST_YEAR <= instant.year <= LAST_YEAR:
        raise ValueError(f"a date has an offset and is of the years {FIRST_YEAR} to {LAST_YEAR}")
    return instant


ObjectName = Annotated[str, StringConstraints(min_length=1, max_length=limits.MAX_NAME_CHARS, pattern=PATTERN)]
ListedName = Annotated[
    str, StringConstraints(min_length=1, max_length=limits.MAX_NAME_CHARS, pattern=PATTERN.replace(r"\s", r"\s,"))
]  # of a queue: settings list them by commas
Instant = Annotated[AwareDatetime, AfterValidator(checked_instant)]

# Words of answers. The description lists those of this version; one of a newer API stays a plain string.
Word = SkipJsonSchema[str]
_known_first = Field(union_mode="left_to_right")
RunWord = Annotated[RunState | Word, _known_first]
TaskWord = Annotated[TaskState | Word, _known_first]
ServiceWord = Annotated[ServiceState | Word, _known_first]
RoleWord = Annotated[Role | Word, _known_first]
ObjectKindWord = Annotated[ObjectKind | Word, _known_first]


class Record(BaseModel):
    model_config = ConfigDict(defer_build=True)  # a command imports the records of a subject and reads one or two


class Request(Record):
    model_config = ConfigDict(extra="forbid", defer_build=False)


class Nothing(Request):
    """Of a route that takes nothing but the names in its path."""


class HistoryEntry(Record):
    at: datetime = Field(title="at")
    event: str = Field(title="event")
    detail: dict[str, Any] | None = Field(title="what")


class Page(Record, Generic[T]):
    items: list[T]
    limit: int
    next: str | None = Field(default=None, description="The `cursor` of the page after this one; null where there is none.")
    more: bool = Field(description="Whether there are items after these.")
