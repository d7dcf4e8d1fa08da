"""Celery: a message for each try, on the Celery queue of the task's queue.

The message holds only the epoch of the try. Celery need not return anything: no result is stored, and a lost message shows because
its try is not claimed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from celery import Celery
from celery.exceptions import CeleryError
from kombu.exceptions import KombuError, OperationalError

from evenflow.core.executors import CELERY_TASK
from evenflow.core.pods.ends import WaitingPod
from evenflow.errors import ExecutorUnavailable, SettingsError
from evenflow.launcher.executor import LaunchFailure
from evenflow.store.serving.launches import Launch

CONNECT_S = 5  # for a broker on the same network; behind an address that moves it may be seconds
ANSWER_S = 5  # for the confirmation of a message: RabbitMQ takes none, and no goodbye, while it has an alarm of memory or disk
# confirm_publish: RabbitMQ confirms a message; the others do so anyway
OPTIONS = {
    "confirm_publish": True,
    "socket_connect_timeout": CONNECT_S,
    "socket_timeout": CONNECT_S,
    "connect_timeout": CONNECT_S,
    "read_timeout": ANSWER_S,
    "write_timeout": ANSWER_S,
}


class CeleryExecutor:
    """``broker`` is a URL, as Celery takes it. Raises :class:`SettingsError` without one."""

    def __init__(self, broker: str) -> None:
        if not broker:
            raise SettingsError("This launcher knows no broker for Celery. Set EVENFLOW_CELERY_BROKER, and start it again.")
        self._broker = broker
        self._app = self._begun()

    async def launch(self, tries: Sequence[Launch]) -> Mapping[int, LaunchFailure]:
        return await asyncio.to_thread(self._send, tries)

    async def reconcile(self, tries: Sequence[Launch]) -> Mapping[int, LaunchFailure]:
        """Returns all: a broker does not report what it has lost. A repeated message costs only itself and a refused claim."""
        return {each.epoch: LaunchFailure("nobody has claimed it") for each in tries}

    @property
    def waiting(self) -> Mapping[int, WaitingPod]:
        return {}

    async def watch(self) -> None:
        await asyncio.Event().wait()

    async def close(self) -> None:
        await asyncio.to_thread(self._app.close)

    def _begun(self) -> Celery:
        """Makes the app. It knows no queue yet, so it declares each one to which it sends: a broker may have come back empty."""
        app = Celery("evenflow", broker=self._broker, set_as_current=False)
        app.conf.update(
            broker_transport_options=OPTIONS, broker_connection_timeout=CONNECT_S, task_ignore_result=True, broker_pool_limit=1
        )
        return app

    def _send(self, tries: Sequence[Launch]) -> Mapping[int, LaunchFailure]:
        """Sends tries. From the first that the broker does not take, all count as failed."""
        sent = 0
        try:
            with self._app.producer_pool.acquire(block=True, timeout=CONNECT_S) as producer:
                for each in tries:
                    self._app.send_task(
                        CELERY_TASK,
                        args=(each.epoch,),
                        queue=each.queue,
                        task_id=f"{CELERY_TASK}-{each.epoch}-{each.sends}",
                        producer=producer,
                        retry=False,
                        ignore_result=True,
                    )
                    sent += 1
        except (KombuError, CeleryError, OperationalError, OSError) as error:
            self._app.close()
            self._app = self._begun()
            if not sent:
                raise ExecutorUnavailable(f"The broker of Celery takes nothing: {_told(error)}") from error
            return {each.epoch: LaunchFailure(f"the broker broke off: {_told(error)}") for each in tries[sent:]}
        return {}


def _told(error: Exception) -> str:
    if not isinstance(error.__cause__, TimeoutError):
        return str(error)
    return f"it did not answer within {ANSWER_S} s. RabbitMQ does so while it has an alarm: type rabbitmq-diagnostics alarms"
