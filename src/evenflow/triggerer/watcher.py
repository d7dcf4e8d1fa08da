"""In a host: a thread that notices when a trigger keeps the event loop busy, and names the trigger and the place.

It regularly looks which callback asyncio runs. Thousands of triggers that fire at once keep a loop busy for seconds, and none of
them is guilty; so only a callback that is found again and again blocks. The frame in which asyncio runs a callback also holds its
context, both for a step of a task and for a plain callback. (The frame has no public name; a test notices when it changes.)
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextvars import Context
from types import FrameType
from typing import NamedTuple

from evenflow.triggerer import limits
from evenflow.triggerer.capture import CURRENT

TellBlocked = Callable[[int | None, float, str], None]  # the key of the trigger, if known; for how long; where

_RUN_CALLBACK = asyncio.Handle._run.__code__


class _RunningCallback(NamedTuple):
    callback: asyncio.Handle
    context: Context
    stack: list[tuple[FrameType, int]]  # the innermost first


class Watcher(threading.Thread):
    """Watches the event loop of the thread that makes it. ``blocked`` is called, from this thread, while one callback continues,
    and ``alive`` every few seconds.
    """

    def __init__(self, blocked: TellBlocked, alive: Callable[[], None]) -> None:
        super().__init__(name="watcher", daemon=True)
        self._blocked, self._alive = blocked, alive
        self._watched = threading.get_ident()
        self._ended = threading.Event()

    def stop(self) -> None:
        self._ended.set()

    def run(self) -> None:
        looked = since = told = told_alive = time.monotonic()
        callback: asyncio.Handle | None = None  # that ran at the last look
        while not self._ended.wait(limits.LOOK):
            before, looked = looked, time.monotonic()
            if looked - told_alive >= limits.ALIVE:
                told_alive = looked
                self._alive()
            running = self._look()
            late = looked - before > limits.BLOCKED  # this thread was late, too: the process was stopped, or had no CPU
            if running is None or running.callback is not callback or late:
                callback, since, told = running and running.callback, looked, looked
            elif looked - told >= limits.BLOCKED:
                told = looked
                summary = traceback.StackSummary.extract(reversed(running.stack[: limits.STACK]))
                self._blocked(running.context.get(CURRENT), looked - since, "".join(summary.format()))

    def _look(self) -> _RunningCallback | None:
        """Returns what the loop runs, or None when it waits."""
        frame: FrameType | None = sys._current_frames().get(self._watched)
        stack = []
        while frame is not None and frame.f_code is not _RUN_CALLBACK:
            stack.append((frame, frame.f_lineno))
            frame = frame.f_back
        if frame is None:
            return None
        callback = frame.f_locals["self"]
        return _RunningCallback(callback, callback._context, stack)
