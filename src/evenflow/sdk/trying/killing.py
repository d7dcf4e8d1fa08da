"""``on_kill``: stops what a try has started outside, when the try is ended early. It is called in the process of the try while that
runs, or, while the try is deferred, in a process that is made for it.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from evenflow.errors import TaskDeferred
from evenflow.sdk.awaiting import where_no_loop_runs
from evenflow.sdk.callbacks import call
from evenflow.sdk.context import Context, current
from evenflow.sdk.deferring import ResumedTry
from evenflow.sdk.operator import BaseOperator
from evenflow.sdk.secrets import outside
from evenflow.sdk.triggers import BaseTrigger, load


def _nobody_listens(armed: bool) -> None:
    return None


on_armed: Callable[[bool], None] = _nobody_listens
"""Set by the process of a worker, and called when :func:`kill_current` begins or ceases to have something to do."""

_executing: Callable[[], None] | None = None  # stops what executes in this process


@contextmanager
def executing(operator: BaseOperator, context: Context) -> Iterator[None]:
    """Inside, :func:`kill_current` means this operator; also afterwards if it has deferred, because its work has not ended."""
    global _executing
    if not operator.stops_work():
        yield
        return
    _executing = partial(stop, operator, context)
    on_armed(True)
    try:
        yield
    except TaskDeferred as deferred:
        _executing = partial(stop, operator, context, partial(_itself, deferred.trigger))
        raise
    except BaseException:
        disarm()
        raise
    disarm()


def disarm() -> None:
    """Notes that the operator has ended."""
    global _executing
    _executing = None
    on_armed(False)


def kill_current() -> None:
    """Runs ``on_kill`` of the operator that executes in this process, at most once; does nothing without one. Never raises."""
    global _executing
    stopping, _executing = _executing, None
    if stopping is not None:
        stopping()


def clean_up(operator: BaseOperator, context: Context, resumed: ResumedTry, render: Callable[[BaseOperator], None]) -> None:
    """Stops what a deferred try has started, without continuing it, even if its fields can no longer be rendered. Never raises."""
    _tried(lambda: render(operator))
    stop(operator, context, lambda: load(resumed.trigger, resumed.trigger_kwargs))


def stop(operator: BaseOperator, context: Context, trigger: Callable[[], BaseTrigger] | None = None) -> None:
    """Does all that an early end needs, each step whatever happened in the others; errors go to stderr, into the task's log.
    ``trigger`` makes the trigger of a deferred operator, which may know what to stop, too.
    """
    token = current.set(context)
    try:
        with outside.reaching(context["ti"].control):
            _tried(operator.on_kill)
            for function in operator.task_settings.on_kill_callback:
                _tried(partial(where_no_loop_runs, partial(call, function, context)))
            if trigger is not None:
                _tried(lambda: _stop_trigger(trigger()))
    finally:
        current.reset(token)
    sys.stdout.flush()
    sys.stderr.flush()


def _itself(trigger: BaseTrigger) -> BaseTrigger:
    return trigger


def _stop_trigger(trigger: BaseTrigger) -> None:
    if type(trigger).on_kill is not BaseTrigger.on_kill:
        import asyncio

        where_no_loop_runs(lambda: asyncio.run(trigger.on_kill()))


def _tried(function: Callable[[], object]) -> None:
    """``sys.exit()`` is an error like others: it must neither skip the next step nor reach the code that is being stopped."""
    try:
        function()
    except BaseException:
        traceback.print_exc()
