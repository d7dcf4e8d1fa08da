"""Runs one callback: an author's function, called with the context of its task or run, or ``on_kill`` of a task."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from evenflow.core.callbacks import CLEAN_UP, Callback, CallbackOf
from evenflow.core.ending import Ending
from evenflow.errors import BadArgument
from evenflow.sdk.callbacks import Function, call
from evenflow.sdk.context import Context, current
from evenflow.sdk.dag import DAG
from evenflow.sdk.mapped.mapping import MappedOperator
from evenflow.sdk.operator import BaseOperator
from evenflow.sdk.operators.notifiers import BaseNotifier
from evenflow.sdk.secrets import outside
from evenflow.sdk.templating.templates import Renderer
from evenflow.sdk.trying.runner import Channel, TryContext, Values, context_of, guarded

OF_A_TASK = ("expanded_ti_count", "task", "task_instance", "task_instance_key_str", "templates_dict", "ti")


def functions_of(dag: DAG, task_id: str | None, event: str) -> tuple[Function, ...]:
    """Returns the functions in the order of their positions; with ``task_id`` None, those of the DAG."""
    if task_id is not None:
        found: tuple[Function, ...] = getattr(dag.get_task(task_id).task_settings, event)
        return found
    if event == Callback.DEADLINE:
        return tuple(function for alert in dag.header.deadlines for function in alert.functions)
    of_runs: tuple[Function, ...] = getattr(dag.header, event)
    return of_runs


def run_callback(dag: DAG, ctx: TryContext, called: CallbackOf, channel: Channel) -> Ending:
    """Never raises: after an exception it has failed, with the traceback on stderr. ``ctx.task_id`` is empty for a callback of the
    DAG.
    """

    def execute() -> Ending:
        if called.event == CLEAN_UP:
            with outside.reaching(channel):
                _clean_up(dag, ctx, channel)
            return Ending(outcome="success")
        functions = functions_of(dag, ctx.task_id or None, called.event)
        if called.position >= len(functions):
            raise BadArgument(f"DAG {dag.dag_id!r} has no {called.event} number {called.position + 1} on this worker.")
        with outside.reaching(channel):
            _call(dag, ctx, called, channel, functions[called.position])
        return Ending(outcome="success")

    return guarded(execute)


def _clean_up(dag: DAG, ctx: TryContext, channel: Channel) -> None:
    """Calls ``on_kill`` of the operator whose try is over, with what that try has stored."""
    task = dag.get_task(ctx.task_id)
    values = Values(task, ctx, channel)
    context = context_of(dag, task, ctx, values, channel, started_at=None)
    arguments = task.elements(ctx.map_index, ctx.map_length, values) if isinstance(task, MappedOperator) else {}
    operator = task.make_instance(arguments)
    assert isinstance(operator, BaseOperator)
    token = current.set(context)
    try:
        operator.on_kill()
    finally:
        current.reset(token)


def _call(dag: DAG, ctx: TryContext, called: CallbackOf, channel: Channel, function: Any) -> None:
    task = dag.get_task(ctx.task_id) if ctx.task_id else next(iter(dag.task_dict.values()))
    values = Values(task, ctx, channel)
    times = {
        name: None if moment is None else datetime.fromisoformat(moment)
        for name, moment in (("started_at", called.started_at), ("ended_at", called.ended_at))
    }
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
