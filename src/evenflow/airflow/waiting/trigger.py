"""A trigger of Airflow, run as one of Evenflow: its event goes straight to the task. It asks the contract from a thread, and the
answer comes through the loop of its host.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from airflow.sdk.execution_time import task_runner
from airflow.sdk.module_loading import import_string
from airflow.sdk.serde import deserialize, serialize

from evenflow.airflow.comms import SdkComms
from evenflow.contracts.airflow.handler import ExecutionApi
from evenflow.contracts.airflow.of_try import AirflowTry
from evenflow.errors import NoContext
from evenflow.sdk.triggers import BaseTrigger, TriggerChannel, TriggerEvent
from evenflow.sdk.trying.runner import TryContext

_ANSWERED_WITHIN = 60.0  # a question of a trigger, which waits for it in a thread


def comms_of_triggers(loop: asyncio.AbstractEventLoop, channel: TriggerChannel) -> SdkComms:
    """Returns the connection for all triggers of a host: the context of a question identifies its trigger."""
    nobody = TryContext(dag_id="", run_id="", task_id="", run_after=datetime.now(UTC))
    return SdkComms(ExecutionApi(AirflowTry(nobody, _FromThreads(loop, channel), {})))


class _FromThreads:
    """A channel that blocks the asking thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, channel: TriggerChannel) -> None:
        self._loop, self._channel = loop, channel

    def ask(self, question: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if asyncio._get_running_loop() is self._loop:
            raise NoContext(
                "A trigger asks for a connection or a state in the middle of its event loop, which would wait for itself. Use "
                "sync_to_async, or the asynchronous method of the hook."
            )
        return asyncio.run_coroutine_threadsafe(self._channel.ask(question, arguments), self._loop).result(_ANSWERED_WITHIN)

    def xcom_pull(self, task_id: str, key: str, map_index: int | None, run_id: str | None = None) -> tuple[bool, Any]:
        raise NoContext("A trigger has no XComs.")

    def xcom_push(self, key: str, value: Any) -> None:
        raise NoContext("A trigger has no XComs.")

    def progress(self, label: str, done: int, total: int, detail: dict[str, Any]) -> None:
        """Does nothing."""


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
        """Returns the real trigger, made once, where its connections can be asked for."""
        if self._made is None:
            if self.channel is not None:
                task_runner.SUPERVISOR_COMMS = comms_of_triggers(asyncio.get_running_loop(), self.channel)
            self._made = import_string(self.classpath)(**deserialize(self.arguments))
        return self._made
