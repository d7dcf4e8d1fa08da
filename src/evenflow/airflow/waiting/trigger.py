"""A trigger of Airflow's, run as one of Evenflow's: its event goes straight to the task."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from airflow.sdk.execution_time import task_runner
from airflow.sdk.module_loading import import_string
from airflow.sdk.serde import deserialize, serialize

from evenflow.airflow.waiting.comms import comms_of_triggers
from evenflow.sdk.triggers import BaseTrigger, TriggerEvent


class AirflowTrigger(BaseTrigger):
    """``classpath`` names the class, ``arguments`` are as the SDK has serialised them."""

    def __init__(self, classpath: str, arguments: dict[str, Any]) -> None:
        self.classpath, self.arguments = classpath, arguments
        self._made: Any = None

    async def run(self) -> AsyncIterator[TriggerEvent]:
        trigger = self._trigger()
        async with contextlib.aclosing(trigger.run()) as events:
            async for event in events:
                yield TriggerEvent(serialize(event.payload))

    async def cleanup(self) -> None:
        if self._made is not None:
            await self._made.cleanup()

    async def on_kill(self) -> None:
        await self._trigger().on_kill()

    def _trigger(self) -> Any:
        """One for each of these, made where its connections can be asked for."""
        if self._made is None:
            if self.channel is not None:
                task_runner.SUPERVISOR_COMMS = comms_of_triggers(asyncio.get_running_loop(), self.channel)
            self._made = import_string(self.classpath)(**deserialize(self.arguments))
        return self._made
