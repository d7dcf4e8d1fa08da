"""One callback, run: an author's function called with the context of the task or run that it is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from evenflow.core.callbacks import Callback
from evenflow.errors import BadArgument
from evenflow.sdk import lookup
from evenflow.sdk.callbacks import call, functions_of
from evenflow.sdk.context import Context, current
from evenflow.sdk.dag import DAG
from evenflow.sdk.notifiers import BaseNotifier
from evenflow.sdk.runner import Channel, TryContext, TryResult, Values, context_of, guarded
from evenflow.sdk.templates import Renderer

OF_A_TASK = ("expanded_ti_count", "task", "task_instance", "task_instance_key_str", "templates_dict", "ti")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackContext:
    """What is to be called: the function at ``position`` among those of ``event``, and what is said of the event."""

    event: str
    position: int
    state: str
    reason: str | None = None
    started_at: datetime | None = None  # the try that it is about, as far as is known
    ended_at: datetime | None = None

    @classmethod
    def from_assignment(cls, callback: Mapping[str, Any]) -> CallbackContext:
        """From the fields of a ``wire.messages.CallbackOf``."""
        values = {name: callback[name] for name in cls.__dataclass_fields__ if name in callback}
        for name in ("started_at", "ended_at"):
            if values.get(name) is not None:
                values[name] = datetime.fromisoformat(values[name])
        return cls(**values)


def run_callback(dag: DAG, ctx: TryContext, called: CallbackContext, channel: Channel) -> TryResult:
    """Never raises: an exception makes it failed, its traceback on stderr. ``ctx.task_id`` is empty for one of the DAG."""

    def execute() -> TryResult:
        functions = functions_of(dag, ctx.task_id or None, called.event)
        if called.position >= len(functions):
            raise BadArgument(f"DAG {dag.dag_id!r} has no {called.event} number {called.position + 1} on this worker.")
        with lookup.reaching(channel):
            _call(dag, ctx, called, channel, functions[called.position])
        return TryResult(outcome="success")

    return guarded(execute)


def _call(dag: DAG, ctx: TryContext, called: CallbackContext, channel: Channel, function: Any) -> None:
    task = dag.get_task(ctx.task_id) if ctx.task_id else next(iter(dag.task_dict.values()))
    values = Values(task, ctx, channel)
    times = {"started_at": called.started_at, "ended_at": called.ended_at}
    context: Context = context_of(dag, task, ctx, values, channel, **times)
    if not ctx.task_id:
        for name in OF_A_TASK:
            context.pop(name, None)
    context["reason"] = called.reason or called.state
    context["state"] = called.state
    if called.event in (Callback.FAILURE, Callback.RETRY):
        context["exception"] = called.reason
    if isinstance(function, BaseNotifier):
        renderer = Renderer(dag, ctx.task_id or dag.dag_id, context, values.of, lambda: ((), ()))
        function = function.rendered(renderer)
    token = current.set(context)
    try:
        call(function, context)
    finally:
        current.reset(token)
