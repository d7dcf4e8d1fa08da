"""``evenflow up``: everything, in one terminal, until Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from evenflow.runtime.child import LogScreen
from evenflow.runtime.local import LocalEvenflow
from evenflow.runtime.settings import Settings

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # HUP: the terminal was closed


async def up(settings: Settings, screen: LogScreen, on_ready: Callable[[LocalEvenflow], None], *, makes_user: bool) -> None:
    """Start everything, call ``on_ready``, and stop everything on the first signal; a second one cuts the draining short.

    Raises what :meth:`LocalEvenflow.start` raises, when all that was started has ended.
    """
    evenflow = LocalEvenflow(settings, screen, makes_user=makes_user)
    told_to_end = asyncio.Event()

    def on_signal() -> None:
        if told_to_end.is_set():
            screen.say("stopping at once")
            evenflow.hurry()
        else:
            screen.say(f"stopping; tasks in hand have {settings.drain_timeout:g} s (again to stop at once)")
            told_to_end.set()

    loop = asyncio.get_running_loop()
    for signum in _SIGNALS:
        loop.add_signal_handler(signum, on_signal)
    starting = asyncio.ensure_future(evenflow.start())
    ending = asyncio.ensure_future(told_to_end.wait())
    try:
        await asyncio.wait((starting, ending), return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            on_ready(evenflow)
            await ending
        else:
            starting.cancel()
            await asyncio.wait([starting])
    finally:
        ending.cancel()
        await evenflow.stop()
        if told_to_end.is_set():
            screen.say("all services are stopped")
