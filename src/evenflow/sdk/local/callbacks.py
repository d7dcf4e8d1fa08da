"""The callbacks of a run in memory: each is called once in its process, after its cause, or only noted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from evenflow.core.callbacks import Callback, CallbackOf, of_run
from evenflow.core.model import UNMAPPED
from evenflow.core.states import RunState, TaskState
from evenflow.sdk.callbacks import Function
from evenflow.sdk.dag import DAG
from evenflow.sdk.trying.callback_run import functions_of, run_callback
from evenflow.sdk.trying.runner import Channel, TryContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A function that an event calls; ``task_id`` is None for a function of the DAG."""

    event: Callback
    task_id: str | None
    map_index: int
    function: Function
    reason: str | None


class TestCallbacks:
    """A failed callback is only reported. Without ``executes`` none is called."""

    def __init__(self, dag: DAG, say: Callable[[str], None], channel: Callable[[str, int], Channel], *, executes: bool) -> None:
        self.called: list[Called] = []
        self._dag, self._say, self._channel, self._executes = dag, say, channel, executes

    def of_try(self, ctx: TryContext, event: Callback, state: TaskState, reason: str | None) -> None:
        self._call(ctx, event, state, reason)

    def of_run(self, ctx: TryContext, state: RunState) -> None:
        reason = "success" if state is RunState.SUCCESS else "task_failure"
        self._call(replace(ctx, task_id="", map_index=UNMAPPED), of_run(state), state, reason)

    def _call(self, ctx: TryContext, event: Callback, state: str, reason: str | None) -> None:
        task_id = ctx.task_id or None
        for position, function in enumerate(functions_of(self._dag, task_id, event)):
            self.called.append(Called(event=event, task_id=task_id, map_index=ctx.map_index, function=function, reason=reason))
            if not self._executes:
                continue
            called = CallbackOf(event=event, position=position, state=state, reason=reason)
            result = run_callback(self._dag, ctx, called, self._channel(ctx.task_id, ctx.map_index))
            if result.outcome != "success":
                self._say(f"{event} of {ctx.task_id or 'the DAG'}: {result.outcome} ({result.reason})")
