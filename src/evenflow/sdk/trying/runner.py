"""Runs one try: resolves references, executes the operator, and returns the outcome as data."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Protocol

from evenflow.core.deferral import Purpose
from evenflow.core.ending import Defer, Ending, OutcomeName
from evenflow.core.limits import MAX_REASON
from evenflow.core.model import UNMAPPED
from evenflow.errors import (
    BadArgument,
    EvenflowError,
    SparkServerLost,
    TaskDeferred,
    TaskFailedForGood,
    TaskRescheduled,
    TaskSkipped,
    XComError,
)
from evenflow.sdk import xcom
from evenflow.sdk.callbacks import call
from evenflow.sdk.clock import clock
from evenflow.sdk.context import Context, DagRun, TaskInstance, current, make_context
from evenflow.sdk.dag import DAG
from evenflow.sdk.deferring import ResumedTry, deferral_of
from evenflow.sdk.mapped.expansion import ExpandedInputs
from evenflow.sdk.mapped.mapping import MappedOperator
from evenflow.sdk.mapped.sequences import Elements
from evenflow.sdk.operator import BaseOperator
from evenflow.sdk.operators.branching import task_indexes
from evenflow.sdk.params import ParamRef, RunParams
from evenflow.sdk.references import Reference
from evenflow.sdk.secrets import outside
from evenflow.sdk.task import Task
from evenflow.sdk.taskgroup import GroupArgument
from evenflow.sdk.templating.templates import Renderer, shown_fields
from evenflow.sdk.triggers import BaseTrigger
from evenflow.sdk.trying.killing import clean_up, executing
from evenflow.sdk.xcomarg import RETURN_VALUE, Combinable, XComArg, item_key


class Channel(Protocol):
    """The connection of a try to the outside. Values are those of ``xcom.encode``, as ``json`` reads and writes them."""

    def xcom_pull(self, task_id: str, key: str, map_index: int | None, run_id: str | None = None) -> tuple[bool, Any]:
        """Returns (found, value). ``map_index`` is -1 for a task that is not mapped, None for a list of all instances in map order.
        ``run_id`` names another run of the DAG.
        """
        ...

    def xcom_push(self, key: str, value: Any) -> None: ...

    def progress(self, label: str, done: int, total: int, detail: dict[str, Any]) -> None: ...

    def ask(self, question: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Returns the control plane's answer to one of ``wire.questions.QUESTIONS``. Raises :class:`ApiRefused` with its reason."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TryContext:
    """What the scheduler says of a try."""

    dag_id: str
    run_id: str
    task_id: str
    run_after: datetime
    map_index: int = UNMAPPED
    try_number: int = 1
    max_tries: int = 1
    epoch: int = 0  # of its dispatch; 0 outside of a worker
    run_type: str = "manual"
    params: dict[str, Any] = field(default_factory=dict)
    logical_date: datetime | None = None
    data_interval_start: datetime | None = None
    data_interval_end: datetime | None = None
    map_length: int | None = None
    api_url: str = ""  # the URL of the API; empty outside of a worker
    resumed: Mapping[str, Any] | None = None  # of a try that has deferred: the fields of a core.deferral.Resumed

    @classmethod
    def from_assignment(cls, assignment: Mapping[str, Any]) -> TryContext:
        """Makes one from the fields of a ``wire.messages.Assignment``; it ignores other fields."""
        values = {name: assignment[name] for name in cls.__dataclass_fields__ if name in assignment}
        for name in ("run_after", "logical_date", "data_interval_start", "data_interval_end"):
            if values.get(name) is not None:
                values[name] = datetime.fromisoformat(values[name])
        return cls(**values)


def run_try(dag: DAG, ctx: TryContext, channel: Channel) -> Ending:
    """Runs the task in this process. Never raises: an exception inside decides the outcome, and its traceback goes to stderr.

    ``sys.exit()`` and ``sys.exit(0)`` are a success without a result; any other exit is a failure.
    """
    return guarded(lambda: _execute(dag, ctx, channel))


def guarded(execute: Callable[[], Ending]) -> Ending:
    """Returns the result of ``execute``, or what its exception means."""
    try:
        return execute()
    except TaskRescheduled as error:
        return Ending(outcome="rescheduled", delay_s=error.delay_s)
    except TaskSkipped as error:
        return Ending(outcome="skipped", reason=_bounded(str(error) or "The task raised TaskSkipped."), error_types=_types(error))
    except SystemExit as error:
        if error.code in (None, 0):
            return Ending(outcome="success")
        return _failure("failed", error, f"SystemExit: the task called sys.exit({error.code!r}).")
    except BaseException as error:
        _print_traceback(error)
        return _failure(_outcome_of(error), error, _reason(error))
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # the task has closed or replaced it
                stream.flush()


def _execute(dag: DAG, ctx: TryContext, channel: Channel) -> Ending:
    task = dag.get_task(ctx.task_id)
    values = Values(task, ctx, channel)
    resumed = None if ctx.resumed is None else ResumedTry.from_assignment(ctx.resumed, ctx.task_id)
    began = clock().now() - timedelta(seconds=resumed.began_s if resumed else 0.0)
    context = context_of(dag, task, ctx, values, channel, started_at=began)
    arguments = task.elements(ctx.map_index, ctx.map_length, values) if isinstance(task, MappedOperator) else {}
    operator = task.make_instance(arguments)
    assert isinstance(operator, BaseOperator)
    with outside.reaching(channel):
        renderer = Renderer(dag, task.task_id, context, values.of, lambda: _data_of(task, arguments))
        if resumed is not None and resumed.purpose == Purpose.CLEAN_UP:
            clean_up(operator, context, resumed, renderer.render_fields)
            return Ending(outcome="failed", reason=resumed.reason)
        renderer.render_fields(operator)
        if renderer.rendered and resumed is None:
            channel.ask("rendered", {"fields": shown_fields(operator)})
        context["templates_dict"] = getattr(operator, "templates_dict", None)
        token = current.set(context)
        try:
            with executing(operator, context):
                result = _result(task, operator, context, resumed)
        except _Deferred as deferred:
            return Ending(outcome="deferred", defer=deferred.defer)
        finally:
            current.reset(token)
    text = result_text(task, result, channel) if task.task_settings.do_xcom_push else None
    skip = task_indexes(dag, context["ti"].skipped_tasks)
    return Ending(outcome="success", result=text, produced=context["outlet_events"].told(), skip=skip)


def _result(task: Task, operator: BaseOperator, context: Context, resumed: ResumedTry | None) -> Any:
    """Returns the result. Raises :class:`_Deferred` when there is none yet."""
    try:
        if resumed is not None:
            return operator.resume_execution(context, resumed)
        _call_before(task, context)
        return operator.execute(context)
    except TaskDeferred as error:
        deferred = error
    raise _Deferred(deferred.trigger, deferral_of(operator, deferred))


def _call_before(task: Task, context: Context) -> None:
    """Calls ``on_execute_callback``, in the process of the try. An error is shown in its log and changes nothing, as in Airflow."""
    for function in task.task_settings.on_execute_callback:
        try:
            call(function, context)
        except Exception:
            traceback.print_exc()


class _Deferred(TaskDeferred):
    """A deferral that can be resumed."""

    def __init__(self, trigger: BaseTrigger, defer: Defer) -> None:
        super().__init__(trigger=trigger, method_name=defer.method)
        self.defer = defer


def result_text(task: Task, result: Any, channel: Channel) -> bytes | None:
    """Returns a result as JSON, None for None. Pushes its items over which other tasks map."""
    what = f"The result of task {task.task_id!r}"
    if task.task_settings.multiple_outputs and result is not None and not _has_names(result):
        raise XComError(f"{what} must be a dict with strings as keys, for multiple_outputs is set; it is {result!r:.80}.")
    encoded = xcom.encode(result, what)
    text = None if encoded is None else xcom.to_json(encoded, what)
    for item in sorted(task.mapped_items):
        channel.xcom_push(item_key(item), _item_of(result, encoded, item, task.task_id))
    return text


def _has_names(result: Any) -> bool:
    return isinstance(result, Mapping) and all(isinstance(name, str) for name in result)


def _data_of(task: Task, arguments: Mapping[str, Any]) -> tuple[Any, Any]:
    """Returns the elements of a mapped instance, and the part of its arguments from the DAG file: only that may hold templates."""
    return arguments, (getattr(task, "inputs", {}), getattr(task, "shared", {}))


def _item_of(result: Any, encoded: Any, item: str, task_id: str) -> Any:
    if not isinstance(result, dict) or item not in result:
        raise XComError(
            f"Another task maps over result[{item!r}] of task {task_id!r}, whose result is {result!r:.80}: it has no such item. "
            f"Return a dict with the key {item!r}."
        )
    return xcom.encode(result[item], f"The item {item!r} of the result of task {task_id!r}")


class Values:
    """The values of references, each pulled once; also the task's own ``ti.xcom_pull`` and ``ti.xcom_push``."""

    def __init__(self, task: Task, ctx: TryContext, channel: Channel) -> None:
        self.task, self.ctx, self.channel = task, ctx, channel
        self.pulled: dict[tuple[str, str], tuple[bool, Any]] = {}
        self.arguments: dict[ExpandedInputs, dict[str, Any]] = {}  # of this index of the task's mapped group

    def of(self, reference: Reference) -> Any:
        match reference:
            case ParamRef(name=name):
                return RunParams(self.ctx.params)[name]
            case XComArg():
                return self._result(reference)
            case Combinable():
                return Elements(self.task.qualified_name, self).all(reference)
            case GroupArgument(name=name, expansion=expansion):
                if expansion not in self.arguments:
                    self.arguments[expansion] = expansion.arguments(self.ctx.map_index, self.ctx.map_length, self)
                if name not in self.arguments[expansion]:
                    raise XComError(f"Task {self.ctx.task_id!r} wants {reference!r}, which is not in the dict of its index.")
                return self.arguments[expansion][name]
            case _:
                raise BadArgument(f"{self.task.qualified_name}: {reference!r} is of a kind that cannot be resolved.")

    def of_index(self, arg: XComArg, map_index: int) -> Any:
        found, value = self.pull(arg.task.task_id, arg.key, map_index)
        return self._item(arg, value) if found else None

    def length(self, arg: XComArg) -> int:
        return int(self._find(arg, 0)["length"])

    def element(self, arg: XComArg, index: int) -> Any:
        map_index = self._find(arg, index)["map_index"]
        if map_index is None:
            raise XComError(f"Task {self.ctx.task_id!r} maps over {arg!r}, which has lost its element {index} since. Clear both.")
        return self.of_index(arg, map_index)

    def _find(self, arg: XComArg, index: int) -> dict[str, Any]:
        return self.channel.ask("element", {"task_id": arg.task.task_id, "key": arg.key, "index": index})

    def _result(self, arg: XComArg) -> Any:
        source = arg.task
        seen = self.task.index_seen(source, self.ctx.map_index)
        address = (source.task_id, arg.key)
        if address not in self.pulled:
            self.pulled[address] = self.pull(source.task_id, arg.key, seen)
        found, value = self.pulled[address]
        if seen is None:
            return [self._item(arg, element) for element in value] if found else []
        if not found and arg.key != RETURN_VALUE:
            raise XComError(f"Task {self.ctx.task_id!r} wants {arg!r}, but that task has pushed nothing under the key {arg.key!r}.")
        return self._item(arg, value if found else None)

    def _item(self, arg: XComArg, value: Any) -> Any:
        for item in arg.path:
            try:
                value = value[item]
            except (KeyError, IndexError, TypeError) as error:
                raise XComError(
                    f"Task {self.ctx.task_id!r} wants {arg!r}, but {value!r:.80} has no item {item!r} ({type(error).__name__}). "
                    f"Check what task {arg.task.task_id!r} returns."
                ) from None
        return value

    def prior_run(self, task_id: str, key: str, map_index: int) -> str | None:
        run_id: str | None = self.channel.ask("prior_run", {"task_id": task_id, "key": key, "map_index": map_index})["run_id"]
        if run_id is None and self._has_outputs(task_id, key):
            return self.prior_run(task_id, RETURN_VALUE, map_index)
        return run_id

    def pull(self, task_id: str, key: str, map_index: int | None, run_id: str | None = None) -> tuple[bool, Any]:
        """Returns what was pushed under ``key``, or for a task with multiple outputs that item of its result."""
        found, value = self._pushed(task_id, key, map_index, run_id)
        if found or not self._has_outputs(task_id, key):
            return found, value
        found, result = self._pushed(task_id, RETURN_VALUE, map_index, run_id)
        if map_index is None:
            items = [each[key] for each in result or () if isinstance(each, dict) and key in each]
            return bool(items), items
        return (True, result[key]) if found and isinstance(result, dict) and key in result else (False, None)

    def _has_outputs(self, task_id: str, key: str) -> bool:
        source = self.task.dag.task_dict.get(task_id)
        return key != RETURN_VALUE and source is not None and bool(source.has_outputs)

    def _pushed(self, task_id: str, key: str, map_index: int | None, run_id: str | None) -> tuple[bool, Any]:
        found, encoded = self.channel.xcom_pull(task_id, key, map_index, run_id)
        return found, xcom.decode(encoded, f"The XCom {key!r} of task {task_id!r}") if found else None

    def push(self, key: str, value: Any) -> None:
        if not isinstance(key, str) or not key or key == RETURN_VALUE or key.startswith(f"{RETURN_VALUE}."):
            raise XComError(
                f"Task {self.ctx.task_id!r} cannot push under the key {key!r}: it must be a string, and {RETURN_VALUE!r} is for "
                "the result."
            )
        what = f"The XCom {key!r} of task {self.ctx.task_id!r}"
        encoded = xcom.encode(value, what)
        xcom.to_json(encoded, what)
        self.channel.xcom_push(key, encoded)


def context_of(
    dag: DAG,
    task: Task,
    ctx: TryContext,
    values: Values,
    channel: Channel,
    *,
    started_at: datetime | None,
    ended_at: datetime | None = None,
) -> Context:
    run = DagRun(
        dag_id=ctx.dag_id,
        run_id=ctx.run_id,
        run_type=ctx.run_type,
        run_after=ctx.run_after,
        logical_date=ctx.logical_date,
        data_interval_start=ctx.data_interval_start,
        data_interval_end=ctx.data_interval_end,
        conf=dict(ctx.params),
    )
    instance = TaskInstance(
        dag_id=ctx.dag_id,
        run_id=ctx.run_id,
        task_id=ctx.task_id,
        map_index=ctx.map_index,
        try_number=ctx.try_number,
        max_tries=ctx.max_tries - 1,
        start_date=started_at,
        end_date=ended_at,
        epoch=ctx.epoch,
        task=task,
        xcoms=values,
        report_progress=channel.progress,
        control=channel,
        api_url=ctx.api_url,
    )
    return make_context(dag, task, run, instance, ctx.params, map_length=ctx.map_length, previous=_Previous(channel).of)


class _Previous:
    """The context's values about the last successful run before this one, read once."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._found: dict[str, Any] | None = None

    def of(self, key: str) -> datetime | None:
        if self._found is None:
            self._found = self._channel.ask("previous_run", {})
        text = self._found.get(key.removeprefix("prev_").removesuffix("_success"))
        return None if text is None else datetime.fromisoformat(text)


def _failure(outcome: OutcomeName, error: BaseException, reason: str) -> Ending:
    return Ending(outcome=outcome, reason=_bounded(reason), error_types=_types(error))


def _outcome_of(error: BaseException) -> OutcomeName:
    if isinstance(error, SparkServerLost):
        return "lost"
    return "failed_for_good" if isinstance(error, TaskFailedForGood) else "failed"


def _reason(error: BaseException) -> str:
    try:
        message = str(error)
    except Exception:
        message = "(its text cannot be made)"
    if isinstance(error, EvenflowError) and error.names_cause:
        return message
    reason = f"{type(error).__name__}: {message}" if message else type(error).__name__
    if isinstance(error, ModuleNotFoundError) and error.name:
        from evenflow.sdk.loading.installed_modules import cure_of_module

        return f"{reason}. {cure_of_module(error.name)}"
    return reason


def _bounded(reason: str) -> str:
    """Returns at most 2,000 characters. It escapes lone surrogates and NUL, which PostgreSQL's text cannot hold."""
    shown = reason.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()
    return shown if len(shown) <= MAX_REASON else shown[: MAX_REASON - 3] + "..."


def _types(error: BaseException) -> list[str]:
    names = [(cls.__module__, cls.__qualname__) for cls in type(error).__mro__ if cls is not object]
    return [name if module == "builtins" else f"{module}.{name}" for module, name in names]


def _print_traceback(error: BaseException) -> None:
    """Prints a traceback from the first line of the author's code on: Evenflow's own frames do not help."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith("evenflow.sdk."):
        trace = trace.tb_next
    if trace is None and isinstance(error, EvenflowError):  # its message says what is wrong, and where
        traceback.print_exception(error.with_traceback(None))
    else:
        traceback.print_exception(type(error), error, trace or error.__traceback__)
