"""How a try ended: one record that passes from its process through the worker and the API to the scheduler.

The process states the result, the worker adds how the process ended, the API seals what must stay secret, and the scheduler decides
by the record.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any, Literal

# cannot_start, lost: the task has not caused this; before or after its start
OutcomeName = Literal["success", "failed", "failed_for_good", "skipped", "rescheduled", "deferred", "cannot_start", "lost"]


# Exit codes of a worker for one try: the result of the try, or that another such worker may take the try.
TRY_ENDED, TRY_FAILED, TRY_LATER = 0, 1, 75


@dataclass(frozen=True, slots=True, kw_only=True)
class AssetChange:
    """What a try says of the event of one of its outlets, or of an asset that it added to one of its aliases."""

    asset: str
    uri: str
    extra: dict[str, Any] = field(default_factory=dict)
    alias: str | None = None
    partition: str | None = None  # named by the task; null: the partition of its run, if the asset has partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class Defer:
    """What a try waits for, and how it then continues. Values are in JSON's own types, as ``sdk.xcom.encode`` makes them."""

    trigger: str  # the path of its class
    trigger_kwargs: dict[str, Any] = field(default_factory=dict)
    method: str = ""
    kwargs: dict[str, Any] = field(default_factory=dict)
    timeout_s: float | None = None
    queue: str | None = None  # of triggerers; null: the default one
    secrets: list[str] = field(default_factory=list)  # texts in it that the worker masks in logs
    sealed: str | None = None  # base64: all of it, for the database, which reads only the trigger, the timeout and the queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    outcome: OutcomeName
    reason: str | None = None  # for people; required when the outcome is not success
    error_types: list[str] = field(default_factory=list)  # qualified class names of the exception, most derived first
    result: bytes | None = None  # of a success: JSON of the return value, none of None; stored as XCom return_value
    length: int | None = None  # elements of the result to map over, where its value does not show them
    delay_s: float | None = None  # until the next start of a rescheduled try; of a failed one that names a delay: until the next
    produced: list[AssetChange] = field(default_factory=list)  # of a success
    skip: list[int] = field(default_factory=list)  # of a success: indexes of the tasks that it skips
    defer: Defer | None = None  # of a deferred try
    exit_code: int | None = None  # of its process; negative: the signal that ended it
    ran_s: float | None = None  # from start to exit
    given_back: bool = False  # of cannot_start: its worker was about to end, so nothing was lost


def told(record: Any) -> dict[str, Any]:
    """Returns the fields of a record that differ from their defaults, as JSON has them."""
    out = {}
    for each in fields(record):
        value = getattr(record, each.name)
        default = each.default_factory() if each.default_factory is not MISSING else each.default
        if value != default:
            out[each.name] = [_told(item) for item in value] if isinstance(value, list) else _told(value)
    return out


def _told(value: Any) -> Any:
    return told(value) if is_dataclass(value) else value
