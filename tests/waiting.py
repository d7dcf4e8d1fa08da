"""Waiting for what has to come true. No test sleeps for a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
What = str | Callable[[], object]  # what is waited for, or what tells why it has not come

# Far above what anything here takes, even on a busy machine: of a service in this process, and of whole systems.
DEADLINE_S = 30.0
SYSTEM_DEADLINE_S = 120.0
_PAUSE_S = 0.01  # between two looks
_LONG_LOOK_S = 0.1  # such as a command; what is waited for needs the processors, too

# Sessions named "other" that wait for a lock. To be asked outside a transaction, within which the answer stays what it was.
BLOCKED = (
    "select count(*) from pg_stat_activity"
    " where datname = current_database() and application_name = 'evenflow other' and wait_event_type = 'Lock'"
)

# All of the test's database: the server is that of others, too.
WAIT_FOR_LOCKS = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


async def until(condition: Callable[[], T], what: What = "it", *, within_s: float = DEADLINE_S) -> T:
    """What ``condition`` gives as soon as it is true, while the event loop goes on."""
    deadline = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < deadline, _still(what)
        await asyncio.sleep(_PAUSE_S)
    return found


def wait_until(condition: Callable[[], T], what: What = "it", *, within_s: float = SYSTEM_DEADLINE_S) -> T:
    """As :func:`until`, of other processes and threads."""
    deadline = time.monotonic() + within_s
    while True:
        began = time.monotonic()
        if found := condition():
            return found
        ended = time.monotonic()
        assert ended < deadline, _still(what)
        took = ended - began
        time.sleep(took if took > _LONG_LOOK_S else _PAUSE_S)


def _still(what: What) -> str:
    return f"still waiting for: {what if isinstance(what, str) else what()}"
