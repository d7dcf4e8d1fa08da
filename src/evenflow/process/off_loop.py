"""Work on large values, in a thread: the event loop beats for all tries of a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from evenflow.process import limits

T = TypeVar("T")


async def off_loop(size: int, work: Callable[[], T]) -> T:
    """What ``work`` on so many bytes answers or raises. What is small is done at once."""
    return work() if size <= limits.AT_ONCE else await asyncio.to_thread(work)
