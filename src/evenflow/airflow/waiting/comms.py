"""The way of triggers to the contract: they ask from threads, and the answers come by their event loop."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from evenflow.airflow.contract.comms import SdkComms
from evenflow.airflow.contract.handler import ExecutionApi
from evenflow.airflow.contract.of_try import AirflowTry
from evenflow.errors import NoContext
from evenflow.sdk.triggers import TriggerChannel
from evenflow.sdk.trying.runner import TryContext

_ANSWERED_WITHIN = 60.0  # a question of a trigger, which waits in a thread for it


def comms_of_triggers(loop: asyncio.AbstractEventLoop, channel: TriggerChannel) -> SdkComms:
    """For all triggers of a host: who asks is known by the context that it asks in."""
    nobody = TryContext(dag_id="", run_id="", task_id="", run_after=datetime.now(UTC))
    return SdkComms(ExecutionApi(AirflowTry(nobody, _FromThreads(loop, channel), {})))


class _FromThreads:
    """A channel that blocks the thread that asks."""

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
        """Nobody is told."""
