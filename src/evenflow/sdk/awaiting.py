"""``await wait_for(trigger)``: a function that is written as if it waited is deferred instead.

At an await without an event the function stops: its process ends. Neither ``finally`` nor ``except`` runs in it, because it has not
ended. When it resumes, it begins from the top, and each await that has its event returns at once. Awaits are identified by their
order and by their triggers: a function that reaches another trigger gets an error.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from evenflow.errors import BadDeferral, TaskDeferred
from evenflow.sdk.context import get_current_context
from evenflow.sdk.deferring import ResumedTry
from evenflow.sdk.triggers import BaseTrigger

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

BEGIN_AGAIN = "begin_again"  # the method of PythonOperator that begins again
Await = dict[str, Any]  # a trigger and a digest identify it; once it is over, it has the fields of a ResumedTry


class Waits:
    """The awaits of a function in this try: ``before`` has those with an event, in order."""

    def __init__(self, before: Sequence[Await]) -> None:
        self._before = list(before)
        self._position = 0
        self.deferred: TaskDeferred | None = None
        self.stopped: asyncio.Event | None = None  # belongs to the loop that runs the function

    @property
    def is_return(self) -> bool:
        return bool(self._before)

    async def of(self, trigger: BaseTrigger, at_most: timedelta | float | None) -> Any:
        """Returns the payload of the event. Raises the error that a missing event means."""
        position, self._position = self._position, self._position + 1
        now = _await_of(trigger)
        if position < len(self._before):
            return _answer(self._before[position], now, position)
        import asyncio

        if self.deferred is None and self.stopped is not None:
            waits = {"waits": [*self._before, now]}
            self.deferred = TaskDeferred(trigger=trigger, method_name=BEGIN_AGAIN, kwargs=waits, timeout=at_most)
            self.stopped.set()
        return await asyncio.get_running_loop().create_future()  # never done: the function stops here


_waits: ContextVar[Waits | None] = ContextVar("evenflow_waits", default=None)


def wait_for(trigger: BaseTrigger, *, timeout: timedelta | float | None = None) -> Coroutine[Any, Any, Any]:
    """In an ``async def`` with ``@task``: returns the payload of the trigger's event, for which the task waits without a process.

    Raises :class:`TaskDeferralTimeout` after ``timeout``, and :class:`TriggerFailed` when the trigger fails repeatedly. Code before
    the await runs again each time: keep what must happen once in ``once``.
    """
    waits = _waits.get()
    if waits is None or waits.stopped is None:
        raise BadDeferral(
            "wait_for() was called where no async task function is running. Write `async def` under @task and await it there; in "
            "execute() of an operator type: self.defer(trigger=..., method_name=...)"
        )
    if not isinstance(trigger, BaseTrigger):
        raise BadDeferral(f"wait_for() takes a trigger, e.g. TimeDeltaTrigger(timedelta(hours=1)), not {trigger!r}.")
    return waits.of(trigger, timeout)


@contextmanager
def waiting(resumed: ResumedTry) -> Iterator[None]:
    """Inside, a function gets the events that it has waited for before, from ``resumed``."""
    *before, last = resumed.kwargs["waits"]
    told = {"deferred_s": resumed.deferred_s, "purpose": resumed.purpose, "event": resumed.event, "reason": resumed.reason}
    token = _waits.set(Waits([*before, {**last, **told}]))
    try:
        yield
    finally:
        _waits.reset(token)


def has_waited() -> bool:
    """Returns whether the running function has begun before in this try."""
    waits = _waits.get()
    return waits is not None and waits.is_return


def run_async(function: Coroutine[Any, Any, Any]) -> Any:
    """Returns the function's result. Raises :class:`TaskDeferred` when it reaches an await without an event."""
    return where_no_loop_runs(lambda: _run(function))


def _run(function: Coroutine[Any, Any, Any]) -> Any:
    import asyncio
    import ctypes

    waits = _waits.get() or Waits(())
    runner = asyncio.Runner()
    try:
        ended = runner.run(_until_it_waits(function, waits))
    except BaseException:
        runner.close()
        raise
    if ended is not None:
        runner.close()
        return ended.result()
    loop = runner.get_loop()
    for task in asyncio.all_tasks(loop):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(task))  # never collected, because that would run its `finally`
    loop.close()
    assert waits.deferred is not None
    raise waits.deferred


async def _until_it_waits(function: Coroutine[Any, Any, Any], waits: Waits) -> asyncio.Task[Any] | None:
    """Returns the task of the function when it has ended, None when it waits."""
    import asyncio

    _waits.set(waits)
    waits.deferred, waits.stopped = None, asyncio.Event()
    running = asyncio.create_task(function)
    stopping = asyncio.create_task(waits.stopped.wait())
    await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
    return running if running.done() else None


def _answer(before: Await, now: Await, position: int) -> Any:
    if (before["trigger"], before["digest"]) != (now["trigger"], now["digest"]):
        what = now["trigger"] if now["trigger"] != before["trigger"] else f"another {now['trigger']}"
        raise BadDeferral(
            f"The await number {position + 1} of this function was for {before['trigger']} and is now for {what}: what it waits "
            "for must be the same each time it begins. Compute arguments that change in ctx.once(...), and wait for times with "
            "TimeDeltaTrigger. Clear the task to begin anew."
        )
    told = {name: before[name] for name in ("purpose", "deferred_s", "reason")}
    ResumedTry(method=BEGIN_AGAIN, trigger=before["trigger"], **told).raise_without_event(get_current_context()["ti"].task_id)
    return before["event"]


def _await_of(trigger: BaseTrigger) -> Await:
    import hashlib

    from evenflow.sdk import xcom

    path, kwargs = trigger.identity()
    what = f"The arguments of the trigger {path}"
    text = xcom.to_json(xcom.encode(kwargs, what), what)
    return {"trigger": path, "digest": hashlib.sha256(text).hexdigest()[:32]}


def where_no_loop_runs(function: Callable[[], T]) -> T:
    """Returns what ``function`` returns, which runs an event loop: here, or in a new thread if this thread already has a loop."""
    if not _loop_runs():
        return function()
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1, "evenflow loop") as thread:
        return thread.submit(contextvars.copy_context().run, function).result()


def _loop_runs() -> bool:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
