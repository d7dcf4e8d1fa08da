"""A worker for exactly one try: it claims the try, runs it like any worker, and ends with it. It runs in a pod of a try.

After SIGTERM its try may continue for as long as a worker's drain may take. A try that has not ended then is given back, and begins
elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal

from evenflow.core.ending import TRY_ENDED, TRY_FAILED, TRY_LATER
from evenflow.runtime import observations as seen
from evenflow.runtime.lifecycle import stop_in_time
from evenflow.telemetry.observing import observe
from evenflow.wire.objects import ObjectStorage
from evenflow.worker.handed import Handed
from evenflow.worker.service import WorkerService


async def host_try(service: WorkerService, epoch: int, *, drain_timeout: float) -> int:
    """Returns the exit code: :data:`TRY_FAILED` if the task has failed, :data:`TRY_LATER` if the worker could not have the try."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, told.set)
    starting = asyncio.create_task(service.start())
    ending = asyncio.create_task(told.wait())
    try:
        await asyncio.wait((starting, ending), return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            return TRY_LATER
        starting.result()
    except BaseException:
        ending.cancel()
        raise
    observe(seen.ready(service.name))
    trying, failing = asyncio.create_task(service.run_try(epoch)), asyncio.create_task(service.failed())
    try:
        await asyncio.wait((trying, failing, ending), return_when=asyncio.FIRST_COMPLETED)
        if ending.done():
            observe(seen.draining(service.name, drain_timeout))
        if not failing.done():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(drain_timeout):
                    await service.drain(drain_timeout)
        handed = await _outcome(trying)
    finally:
        await stop_in_time(service)
        for task in (trying, failing, ending):
            task.cancel()
        await asyncio.gather(trying, failing, ending, return_exceptions=True)
    observe(seen.stopped(service.name))
    if handed is Handed.LATER:
        return TRY_LATER
    return TRY_FAILED if service.outcome in ("failed", "failed_for_good") else TRY_ENDED


async def _outcome(trying: asyncio.Task[Handed]) -> Handed:
    """Returns the outcome. A try that continues when its worker must end belongs to another worker."""
    return trying.result() if trying.done() else Handed.LATER


class NoStorage(ObjectStorage):
    """The storage of a worker whose files vanish with it, and that has no other place for large values."""

    def __init__(self) -> None:
        super().__init__("no storage")

    def write(self, name: str, data: bytes) -> None:
        raise OSError(
            f"this worker ends with its try, and its files with it ({os.uname().nodename}): it needs object storage, such as s3://"
        )

    def read(self, name: str) -> bytes:
        raise OSError("this worker was told of no object storage")
