"""A trigger of Airflow that watches an asset: each of its events is one of the asset, and it continues.

An event is told to the control plane before the trigger is asked for the next one. While the API is away the trigger waits with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from evenflow.airflow.waiting.trigger import AirflowTrigger
from evenflow.sdk.triggers import TriggerEvent

_PAUSE_S = 1.0  # before a trigger that has ended begins anew, as in Airflow
_LAST_WORD_S = 10.0  # for an event that has come when the watch is to end here


class AirflowWatch(AirflowTrigger):
    """``classpath`` and ``arguments`` are those of the watching trigger."""

    async def run(self) -> AsyncIterator[TriggerEvent]:
        number = 0
        while True:
            async with contextlib.aclosing(_events_of(self._trigger())) as events:
                async for event in events:
                    number += 1
                    await self._tell(number, event.payload)
            await self.cleanup()
            self._made = None
            await asyncio.sleep(_PAUSE_S)
        yield TriggerEvent()  # makes this a generator; a watch ends from outside

    async def _tell(self, number: int, payload: Any) -> None:
        """An event is told even when the watch is to end, since the trigger may have taken it from where it came."""
        extra = {"from_trigger": True, "payload": json.loads(json.dumps(payload, default=str))}
        telling = asyncio.ensure_future(self.ask("watched", {"number": number, "extra": extra}))
        try:
            await asyncio.shield(telling)
        except asyncio.CancelledError:
            async with asyncio.timeout(_LAST_WORD_S):
                await telling
            raise


def _events_of(trigger: Any) -> Any:
    """Returns the events of a trigger, by its stream if it has one; each trigger opens a stream of its own."""
    if trigger.shared_stream_key() is None:
        return trigger.run()
    return trigger.filter_shared_stream(type(trigger).open_shared_stream(trigger.serialize()[1]))
