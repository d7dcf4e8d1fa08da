"""Tasks with a process in a session of its own, which nobody but Evenflow ends when the task is ended. It writes a ledger, too."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from ledger import Entry, Stray

from evenflow import dag, get_current_context, task

SPARE: dict[str, Any] = {"retries": 4, "retry_delay": 0.05}
LASTS_S = 120.0  # longer than a scenario, unless somebody ends it
MARGIN_S = 1.5


@contextmanager
def straying(ti: Any) -> Iterator[None]:
    """A task that ends in the ordinary way ends its process itself: it would be let go."""
    told, tell = os.pipe()
    if not (child := os.fork()):
        os.setsid()
        if not os.fork():
            os.write(tell, b"%d" % os.getpid())
            stray = Stray(ti)
            stray.begin()
            stray.work(LASTS_S)
        os._exit(0)
    os.waitpid(child, 0)
    pid = int(os.read(told, 20))
    yield
    os.kill(pid, signal.SIGKILL)


def work(seconds: float) -> None:
    ti = get_current_context()["ti"]
    with straying(ti):
        entry = Entry(ti)
        entry.begin()
        entry.work(seconds)
    entry.end()


@dag(default_args=SPARE)
def strays() -> None:
    @task
    def strays_for_long() -> None:
        work(2.0)

    @task(execution_timeout=timedelta(seconds=MARGIN_S))
    def late() -> None:
        """Takes too long on its first try."""
        work(60.0 if get_current_context()["ti"].try_number == 1 else 0.0)

    strays_for_long() >> late()


strays()
