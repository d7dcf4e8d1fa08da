"""Event loops beside one that may be running: ``dag.test()`` works in a notebook too."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def where_no_loop_runs(function: Callable[[], T]) -> T:
    """What ``function`` returns, which runs an event loop: here, or in a thread of its own when this one has a loop already."""
    if not _loop_runs():
        return function()
    import contextvars
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1, "evenflow loop") as thread:
        return thread.submit(contextvars.copy_context().run, function).result()


def _loop_runs() -> bool:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
