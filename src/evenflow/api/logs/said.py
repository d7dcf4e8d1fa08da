"""What the API itself writes into a log: that it is cut, and what is missing."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from evenflow.api import limits
from evenflow.core.quantities import counted
from evenflow.wire.messages import LostLog

CUT = b"\n-- The log is cut here: it has reached the limit of %d MiB for one try. --\n" % (limits.LOG_TRY // 2**20)
TORN = b"\n-- The log is cut here: %d parts of it are missing already. --\n" % limits.LOG_PARTS


def gap_line(size: int, lost: LostLog | None) -> bytes:
    """Returns the line in place of ``size`` missing bytes, with an empty line before it.

    ``lost`` is what the log's writer knows of the gap.
    """
    why = "they were lost, or another API server has them in a folder of its own"
    if lost is not None:
        lines = counted(lost.lines, "line") if lost.lines else "a part of a line"
        which = lines if lost.bytes == size else f"up to {lines}" if lost.bytes > size else f"{lost.bytes:,} of them, {lines},"
        reason = " ".join(lost.reason.split())[:300]
        why = f"{which} written from {_clock(lost.since)} to {_clock(lost.until)} UTC could not be stored: {reason}"
    return f"\n-- {size:,} bytes of this log are missing here: {why} --\n".encode(errors="backslashreplace")


def _clock(age: int) -> str:
    return f"{datetime.fromtimestamp(time.time() - min(max(age, 0), limits.LOG_AGE), UTC):%Y-%m-%d %H:%M:%S}"
