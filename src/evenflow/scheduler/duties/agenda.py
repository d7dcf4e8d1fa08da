"""Duties, each at its own pace. None can keep another from its turn: only the one that fails waits longer each time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evenflow.core.limits import DUTY_PAUSE_S, SWEEP_S
from evenflow.scheduler import observations as seen
from evenflow.scheduler.database import UNFIT
from evenflow.scheduler.quarantine import may_be_poison
from evenflow.store.db.failures import is_gone
from evenflow.store.db.rows import Conn
from evenflow.telemetry.observing import observe


@dataclass(frozen=True, slots=True)
class Duty:
    """``perform`` may answer in how many seconds it is due again; else that is its pace."""

    name: str
    every_s: float
    perform: Callable[[Conn], float | None]
    longest_pause_s: float = DUTY_PAUSE_S  # between two of its failures


def _ignore(duty: str, took_s: float, *, failed: bool) -> None:
    """Does nothing with what is told."""


class Agenda:
    """What is due, and how often each duty has failed, is kept from one connection to the next. ``performed`` is told of each duty
    the seconds that it took and whether it failed; ``clock`` is monotonic.
    """

    def __init__(
        self, duties: Sequence[Duty], performed: Callable[..., None] = _ignore, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._duties, self._performed, self._clock = duties, performed, clock
        self._due = dict.fromkeys((duty.name for duty in duties), 0.0)
        self._failures: dict[str, int] = {}

    def perform(self, conn: Conn, stop: threading.Event) -> None:
        """Performs duties until ``stop``. Raises exceptions that end a scheduler, and the failure of a duty whose connection is
        broken, or leads to a server that takes no writes: the other duties need a new connection.
        """
        while not stop.is_set():
            for duty in self._duties:
                if self._clock() >= self._due[duty.name] and not stop.is_set():
                    self._perform(conn, duty)
            stop.wait(max(0.0, min(self._due.values()) - self._clock()))

    def _perform(self, conn: Conn, duty: Duty) -> None:
        began = self._clock()
        failed = True
        try:
            again_s = duty.perform(conn)
            failed = False
            self._failures.pop(duty.name, None)
            self._due[duty.name] = self._clock() + (duty.every_s if again_s is None else again_s)
        except UNFIT:
            raise
        except Exception as error:
            pause_s = self._put_off(duty)
            if conn.closed or is_gone(error):
                raise
            if may_be_poison(error):
                observe(seen.duty_broken(duty.name, pause_s, error))
            else:
                observe(seen.duty_failed(duty.name, pause_s, " ".join(str(error).split())))
        finally:
            self._performed(duty.name, self._clock() - began, failed=failed)

    def _put_off(self, duty: Duty) -> float:
        failures = self._failures[duty.name] = self._failures.get(duty.name, 0) + 1
        pause_s = min(SWEEP_S * 2.0 ** min(failures - 1, 10), duty.longest_pause_s)
        self._due[duty.name] = self._clock() + pause_s
        return pause_s
