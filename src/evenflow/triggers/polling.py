"""Looking again and again: the shared part of all built-in triggers but those of time.

A look returns the content of the trigger's event, or None: not yet. When there is no answer at all it raises
:class:`LookUnanswered`; the trigger fails only after its patience, so a restart of the other side goes unnoticed.
:class:`LookRefused` is for problems that another look cannot solve. Both end as an event of the status ``failed``, whose
``message`` the task raises.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from typing import Any

from evenflow.errors import BadArgument, LookRefused, LookUnanswered
from evenflow.sdk.operators.built_in_triggers import SHORTEST_PAUSE_S
from evenflow.sdk.triggers import BaseTrigger, TriggerEvent
from evenflow.triggers import limits

Payload = dict[str, Any]  # content of a TriggerEvent: JSON, with "status" at least
SUCCESS, FAILED = "success", "failed"


class PollingTrigger(BaseTrigger):
    """Looks every ``poll_interval`` seconds (10 % more or less, at random), the first time at once.

    A subclass has ``look`` and an ``__init__`` whose parameters are attributes of the same names: its arguments are sent as these.
    """

    def __init__(self, poll_interval: float, patience: float = limits.PATIENCE) -> None:
        super().__init__()
        if not poll_interval >= SHORTEST_PAUSE_S:
            raise BadArgument(
                f"{type(self).__name__}: poll_interval must be at least {SHORTEST_PAUSE_S:g} seconds, not {poll_interval!r}."
            )
        self.poll_interval, self.patience = float(poll_interval), float(patience)

    async def look(self) -> Payload | None:
        """Returns the event, or None: not yet. Raises :class:`LookUnanswered` and :class:`LookRefused`."""
        raise NotImplementedError(f"{type(self).__name__} has no look(self)")

    async def run(self) -> AsyncIterator[TriggerEvent]:
        yield TriggerEvent(await self._poll())

    async def _poll(self) -> Payload:
        silent_since: float | None = None
        while True:
            try:
                event = await self.look()
            except LookRefused as error:
                return {"status": FAILED, "message": str(error)}
            except LookUnanswered as error:
                now = time.monotonic()
                if silent_since is None:
                    silent_since = now
                    print(f"{error} Looking again for {self.patience:g} s.", flush=True)
                if now - silent_since >= self.patience:
                    return {"status": FAILED, "message": f"{error} That has lasted for {now - silent_since:.0f} s."}
                await asyncio.sleep(self._pause(now - silent_since))
                continue
            if event is not None:
                return event
            silent_since = None
            await asyncio.sleep(self._pause())

    def _pause(self, silent_s: float = 0.0) -> float:
        """Returns the pause. During silence it grows: each pause is as long as all before it."""
        pause = max(self.poll_interval, min(silent_s, limits.LONGEST_BACKOFF))
        return pause * random.uniform(1 - limits.JITTER, 1 + limits.JITTER)
