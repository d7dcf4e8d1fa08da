"""What a running try asks and tells, brought to the control plane with the try's token, which the try itself never sees."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

import structlog

from evenflow.errors import ApiRefused, ApiUnavailable, StaleEpoch
from evenflow.process.frames import Header
from evenflow.process.patience import Patience
from evenflow.wire.messages import Progress, XComPull, XComPush, XComValue
from evenflow.worker import limits

log = structlog.get_logger(__name__)


class TryApi(Protocol):
    async def push_xcom(self, token: str, message: XComPush) -> None: ...

    async def pull_xcom(self, token: str, message: XComPull) -> XComValue: ...

    async def send_progress(self, token: str, message: Progress) -> None: ...


class TryProxy:
    """Of one try. ``answer`` sends a frame to its process, which asks one question at a time."""

    def __init__(self, api: TryApi, token: str, answer: Callable[[Header, bytes], None]) -> None:
        self._api, self._token, self._answer = api, token, answer
        self._tasks: set[asyncio.Task[None]] = set()
        self._progress: Progress | None = None
        self._progressing = False

    def serve(self, header: Header, body: bytes) -> None:
        """Take a frame from the try. Raises :class:`ValueError` for one that no try of this version sends."""
        match header:
            case {"ask": "pull", "task_id": str() as task_id, "key": str() as key, "map_index": int() | None as map_index}:
                self._spawn(self._pull(XComPull(task_id=task_id, key=key, map_index=map_index)))
            case {"ask": "push", "key": str() as key}:
                self._spawn(self._push(XComPush(key=key, value=body)))
            case {
                "tell": "progress",
                "label": str() as label,
                "done": int() as done,
                "total": int() as total,
                "detail": dict() as detail,
            }:
                self._progress = Progress(label=label, done=done, total=total, detail=detail)
                if not self._progressing:
                    self._progressing = True
                    self._spawn(self._send_progress())
            case _:
                raise ValueError(f"a frame that is not known: {str(header)[:200]}")

    def close(self) -> None:
        """The try is over; nobody waits for answers."""
        for task in self._tasks:
            task.cancel()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pull(self, question: XComPull) -> None:
        patience = Patience()
        while True:
            try:
                value = await self._api.pull_xcom(self._token, question)
            except ApiUnavailable:  # the try waits with us, until the API is back or the lease is over
                await patience.wait()
            except (ApiRefused, StaleEpoch) as error:
                return self._answer({"error": str(error)}, b"")
            else:
                return self._answer({"found": value.found}, value.value or b"null")

    async def _push(self, value: XComPush) -> None:
        patience = Patience()
        while True:
            try:
                await self._api.push_xcom(self._token, value)
            except ApiUnavailable:
                await patience.wait()
            except (ApiRefused, StaleEpoch) as error:
                return self._answer({"error": str(error)}, b"")
            else:
                return self._answer({}, b"")

    async def _send_progress(self) -> None:
        """Send the newest until there is no newer one. Progress is for people: what cannot be delivered is dropped."""
        while (progress := self._progress) is not None:
            self._progress = None
            try:
                await self._api.send_progress(self._token, progress)
            except (ApiUnavailable, ApiRefused, StaleEpoch) as error:
                log.debug("progress dropped", reason=str(error))
            await asyncio.sleep(limits.PROGRESS_PAUSE)
        self._progressing = False
