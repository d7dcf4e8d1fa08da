"""Triggers of a run in memory: all in one event loop, which runs while the run has nothing else to do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from evenflow.core.deferral import Purpose
from evenflow.core.ending import Defer
from evenflow.errors import BadDeferral, TaskDeferralTimeout
from evenflow.sdk import xcom
from evenflow.sdk.awaiting import where_no_loop_runs
from evenflow.sdk.triggers import BaseTrigger, TriggerEvent
from evenflow.sdk.trying.runner import Channel

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class _AsyncChannel:
    """Lets a trigger ask what its task may ask."""

    channel: Channel

    async def ask(self, question: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return self.channel.ask(question, arguments)


@dataclass(slots=True)
class _RunningTrigger:
    defer: Defer
    since: float
    task: asyncio.Task[dict[str, Any]]


class TestTriggers(Generic[K]):
    """Triggers by the instance that waits for them. The time of ``make_loop()`` is that of the run."""

    def __init__(self, make_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self._make_loop = make_loop
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: dict[K, _RunningTrigger] = {}

    def __bool__(self) -> bool:
        return bool(self._running)

    def begin(self, key: K, trigger: BaseTrigger, defer: Defer, channel: Channel) -> None:
        loop = self._loop = self._loop or self._make_loop()
        trigger.channel = _AsyncChannel(channel)
        self._running[key] = _RunningTrigger(defer, loop.time(), loop.create_task(_watch(trigger, defer.timeout_s)))

    def wait(self, at_most_s: float | None) -> tuple[float, dict[K, dict[str, Any]]]:
        """Waits until a trigger is over, for at most ``at_most_s``. Returns how long it waited, and for each instance that resumes
        the fields of a ``core.deferral.Resumed``.
        """
        assert self._loop is not None
        began = self._loop.time()
        self._run(
            asyncio.wait([each.task for each in self._running.values()], timeout=at_most_s, return_when=asyncio.FIRST_COMPLETED)
        )
        over = {key: each for key, each in self._running.items() if each.task.done()}
        for key in over:
            del self._running[key]
        now = self._loop.time()
        return now - began, {
            key: {**_kept(each.defer), **each.task.result(), "deferred_s": now - each.since} for key, each in over.items()
        }

    def kill(self, key: K, reason: str) -> dict[str, Any] | None:
        """Ends a trigger. Returns how its task should clean up, None when it does not wait."""
        if (killed := self._running.pop(key, None)) is None:
            return None
        self._cancel([killed])
        return {**_kept(killed.defer), "purpose": "clean_up", "reason": reason}

    def close(self) -> None:
        if self._loop is not None:
            self._cancel(list(self._running.values()))
            self._run(self._loop.shutdown_asyncgens())
            self._loop.close()

    def _cancel(self, running: list[_RunningTrigger]) -> None:
        for each in running:
            each.task.cancel()
        if running:
            self._run(asyncio.wait([each.task for each in running]))

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        loop = self._loop
        assert loop is not None
        where_no_loop_runs(lambda: loop.run_until_complete(coroutine))


def _kept(defer: Defer) -> dict[str, Any]:
    return {name: getattr(defer, name) for name in ("trigger", "trigger_kwargs", "method", "kwargs")}


async def _watch(trigger: BaseTrigger, timeout_s: float | None) -> dict[str, Any]:
    """Returns what the trigger's end means for the task. It runs once: a failure that waiting may cure belongs outside of tests."""
    try:
        async with asyncio.timeout(timeout_s) as bound:
            return {"purpose": Purpose.EVENT, "event": await _first_event(trigger)}
    except TaskDeferralTimeout:
        return {"purpose": Purpose.TIMEOUT}
    except Exception as error:
        if bound.expired():
            return {"purpose": Purpose.TIMEOUT}
        return {"purpose": Purpose.FAILED, "reason": f"{type(error).__name__}: {error}"}
    finally:
        await trigger.cleanup()


async def _first_event(trigger: BaseTrigger) -> Any:
    async for event in trigger.run():
        if not isinstance(event, TriggerEvent):
            raise BadDeferral(f"{type(trigger).__name__}.run() yields {event!r:.80}, which is no TriggerEvent.")
        return xcom.encode(event.payload, f"The event of {type(trigger).__name__}")
    raise BadDeferral(f"{type(trigger).__name__}.run() ended without an event.")
