"""An end for what may never come to one: not a measure of speed, but a test that fails instead of hanging."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class DidNotEnd(BaseException):
    """No ``except Exception`` of what is tested takes it."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raises :class:`DidNotEnd` in the main thread when this process has used so much CPU time: a busy machine is no hang."""

    def ring(signum: int, frame: FrameType | None) -> None:
        raise DidNotEnd(f"this takes more than {seconds:g} s of CPU time")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
