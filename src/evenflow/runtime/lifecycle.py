"""Hosts one service in a process, from its start to an orderly end, on a signal or when it fails."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any

from evenflow.errors import DatabaseSetBack, EvenflowError
from evenflow.runtime import observations as seen
from evenflow.runtime.readiness import LIVE, READY, STOPPING, TELL_S, Notifier
from evenflow.telemetry.observing import observe
from evenflow.telemetry.service import Service

STOP_TIMEOUT_S = 10.0  # a stop waits only for a few short statements and requests


async def host(
    service: Service,
    *,
    drain_timeout: float,
    notifier: Notifier | None = None,
    live: Callable[[], bool] = lambda: True,
    needed_by: int = -1,
) -> int:
    """Runs ``service`` until SIGTERM or SIGINT, or until it fails, and returns the exit code: 0 when it was told to end, else 1.

    Raises :class:`DatabaseSetBack`, after a stop, when the service must begin anew without its memory. The first signal drains it,
    for ``drain_timeout`` seconds at most; a second one stops it at once. Errors of its ``start`` pass through. While it is
    ``live``, it tells its starter so every ``TELL_S`` seconds. When the process behind the descriptor ``needed_by`` ends, it drains
    as after the first signal. This is not a signal: the kernel sends the signal for a parent's death once for each thread that
    dies, and a second one would end what should be finished.
    """
    notifier = notifier or Notifier(os.environ)
    told_to_end, told_to_hurry, signalled = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        told_to_end.set()
        (told_to_hurry if signalled.is_set() else signalled).set()

    def on_orphaned() -> None:
        loop.remove_reader(needed_by)
        observe(seen.orphaned(service.name))
        told_to_end.set()

    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, on_signal)
    if needed_by >= 0:
        loop.add_reader(needed_by, on_orphaned)

    if not await _until(service.start(), told_to_end):
        return 0
    notifier.send(READY)
    observe(seen.ready(service.name))
    telling = asyncio.create_task(_tell_live(notifier, live), name="watchdog")
    exit_code = 0
    try:
        if not await _until(_report_failure(service), told_to_end):
            notifier.send(STOPPING)
            observe(seen.draining(service.name, drain_timeout))
            await _drain(service, told_to_hurry, drain_timeout)
        else:
            exit_code = 1
    finally:
        await stop_in_time(service)
        telling.cancel()
    observe(seen.stopped(service.name))
    return exit_code


async def _tell_live(notifier: Notifier, live: Callable[[], bool]) -> None:
    """Runs in the event loop itself, so that a hanging loop reports nothing."""
    while True:
        await asyncio.sleep(TELL_S)
        if live():
            notifier.send(LIVE)


async def _until(work: Coroutine[Any, Any, None], end: asyncio.Event) -> bool:
    """Returns whether ``work`` was done before ``end``; if not, it is cancelled. Passes on its exceptions."""
    working, ending = asyncio.ensure_future(work), asyncio.ensure_future(end.wait())
    try:
        await asyncio.wait((working, ending), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
            return True
        return False
    finally:
        for task in (working, ending):
            task.cancel()
        await asyncio.gather(working, ending, return_exceptions=True)


async def _report_failure(service: Service) -> None:
    failure = await service.failed()
    if isinstance(failure, DatabaseSetBack):
        raise failure
    known = isinstance(failure, EvenflowError)  # its sentence says all; for other errors the place matters
    observe(seen.broken(service.name, str(failure), None if known else failure))


async def _drain(service: Service, hurry: asyncio.Event, at_most_s: float) -> None:
    try:
        async with asyncio.timeout(at_most_s):
            if not await _until(service.drain(at_most_s), hurry):
                observe(seen.hurried(service.name))
    except TimeoutError:
        observe(seen.not_drained(service.name, at_most_s))


async def stop_in_time(service: Service) -> None:
    """Stops the service, or gives up after a time."""
    try:
        async with asyncio.timeout(STOP_TIMEOUT_S):
            await service.stop()
    except TimeoutError:
        observe(seen.not_stopped(service.name, STOP_TIMEOUT_S))
