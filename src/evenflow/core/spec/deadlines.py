"""When a run is to have ended, in words for people. The database says at which moment that is (``due_of_deadline``)."""

from __future__ import annotations

from evenflow.core.model import DeadlineSpec
from evenflow.core.quantities import duration

_MOMENTS = {  # the words with an interval, and without one
    "queued_at": ("the run was asked for", "when the run is asked for"),
    "logical_date": ("the logical date of the run", "at the logical date of the run"),
}


def when_due(deadline: DeadlineSpec) -> str:
    """Returns for example "1 h 00 m after the run was asked for", or "by 07:00 Europe/Berlin, the first after the run is due"."""
    moment, at_once = _moment(deadline)
    if not deadline.interval:
        return at_once
    side = "after" if deadline.interval > 0 else "before"
    return f"{duration(abs(deadline.interval))} {side} {moment}"


def _moment(deadline: DeadlineSpec) -> tuple[str, str]:
    match deadline.reference:
        case "time_of_day":
            time = f"{(deadline.at or '').removesuffix(':00')} {deadline.timezone}"
            return f"{time}, the first after the run is due", f"by {time}, the first after the run is due"
        case "fixed_datetime":
            return str(deadline.at), f"at {deadline.at}"
        case "average_runtime":
            words = f"the average of the last {deadline.runs} runs that succeeded, of at least {deadline.least}"
            return words, f"after {words}"
        case reference:
            return _MOMENTS[reference]
