"""What a running task knows about itself, and stores beyond its process: the context, in Airflow's words.

Entries of the context reach a function as parameters of the same name, as ``**context``, or through :func:`get_current_context`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar

from evenflow.core.limits import MAX_NAME_CHARS, MAX_ONCE_BYTES
from evenflow.errors import BadArgument, ConnectionNotFound, NoContext, VariableNotFound, XComError
from evenflow.sdk.asset_events import Control, InletEvents, OutletEvents, TriggeringAssetEvents
from evenflow.sdk.context_entries import MISSING_ENTRIES, PREVIOUS_KEYS
from evenflow.sdk.dag import DAG
from evenflow.sdk.pages import page_of
from evenflow.sdk.params import RunParams
from evenflow.sdk.secrets.connections import get_connection
from evenflow.sdk.secrets.variables import Variable
from evenflow.sdk.task import Task
from evenflow.sdk.xcomarg import RETURN_VALUE

T = TypeVar("T")


class XComs(Protocol):
    """Values of other tasks of the run, and of this one, as Python objects."""

    def pull(self, task_id: str, key: str, map_index: int | None, run_id: str | None = None) -> tuple[bool, Any]: ...

    def prior_run(self, task_id: str, key: str, map_index: int) -> str | None:
        """Returns the run with the newest value: this one, or one of the DAG with an earlier logical date."""
        ...

    def push(self, key: str, value: Any) -> None: ...


class Kept:
    """The stored values of one task instance."""

    def __init__(self, task_id: str, control: Control) -> None:
        self._task_id, self._control = task_id, control

    def once(self, name: str, function: Callable[[], Any]) -> Any:
        """Works like :meth:`evenflow.TaskInstance.once`."""
        if not callable(function):
            raise BadArgument(
                f"once({name!r}, ...) takes a function without arguments, e.g. lambda: submit(x), not {function!r:.80}."
            )
        if inspect.iscoroutinefunction(function):
            return self._once_async(name, function)
        kept = self._ask(name)["kept"]
        return self._decoded(name, kept) if kept else self._store(name, function())

    async def _once_async(self, name: str, function: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        kept = self._ask(name)["kept"]
        return self._decoded(name, kept) if kept else self._store(name, await function())

    def outside(self, name: str, value: Any) -> None:
        """Stores what names something that runs outside; its key has been asked for. If the try is over before it has forgotten the
        name, ``on_kill`` of its operator is called elsewhere, with a copy of the value; the value itself stays for the next try,
        also when the task is cleared.
        """
        self._store(name, value, outside=True)

    def value(self, name: str, default: Any) -> Any:
        kept = self._ask(name)["kept"]
        return self._decoded(name, kept) if kept else default

    def key(self, name: str) -> str:
        return str(self._ask(name)["key"])

    def forget(self, name: str) -> None:
        self._control.ask("forget_once", {"name": _checked_name(name)})

    def _ask(self, name: str) -> dict[str, Any]:
        return self._control.ask("once", {"name": _checked_name(name)})

    def _store(self, name: str, value: Any, *, outside: bool = False) -> Any:
        """Returns the stored value: this one, unless another was stored before."""
        if inspect.isawaitable(value):
            raise BadArgument(
                f"once({name!r}, ...): the function returned something to be awaited. Give an `async def`, and await once(...)."
            )
        from evenflow.sdk import xcom  # here and below: not needed for `import evenflow`

        what = f"What task {self._task_id!r} keeps as {name!r}"
        encoded = xcom.encode(value, what)
        size = len(xcom.to_json(encoded, what))
        if size > MAX_ONCE_BYTES:
            raise BadArgument(f"{what} is {size:,} bytes as JSON, above the limit of {MAX_ONCE_BYTES:,}. Keep an id or a path.")
        said = {"name": name, "kept": {"value": encoded}, **({"outside": True} if outside else {})}
        return self._decoded(name, self._control.ask("set_once", said)["kept"])

    def _decoded(self, name: str, kept: dict[str, Any]) -> Any:
        from evenflow.sdk import xcom

        return xcom.decode(kept["value"], f"What task {self._task_id!r} keeps as {name!r}")


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise BadArgument(f"once(): the name must be a string of 1 to {MAX_NAME_CHARS} printable characters, not {name!r:.80}.")
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class DagRun:
    """The run of a task."""

    dag_id: str
    run_id: str
    run_type: str
    run_after: datetime
    logical_date: datetime | None
    data_interval_start: datetime | None
    data_interval_end: datetime | None
    conf: dict[str, Any] = field(default_factory=dict)  # the parameters of the run, under Airflow's name


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInstance:
    """One try of a task, as ``ti`` in the context."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int  # -1 when the task is not mapped
    try_number: int  # from 1
    max_tries: int  # further tries allowed after the first, as in Airflow
    start_date: datetime | None = None  # when the try began
    end_date: datetime | None = None  # when the try ended: known to callbacks
    epoch: int = 0  # identifies this dispatch for ever: a key for outside systems that should do a thing once; 0 in tests
    task: Task = field(repr=False)
    xcoms: XComs = field(repr=False)
    report_progress: Callable[[str, int, int, dict[str, Any]], None] = field(repr=False)
    control: Control = field(repr=False)
    skipped_tasks: set[str] = field(default_factory=set, repr=False)  # tasks that a success of this try skips
    api_url: str = field(default="", repr=False)

    @property
    def duration(self) -> float | None:
        """The seconds that the try took; None while it runs."""
        return (self.end_date - self.start_date).total_seconds() if self.start_date and self.end_date else None

    @property
    def hostname(self) -> str:
        """The name of the host on which this runs."""
        return os.uname().nodename

    @property
    def page_url(self) -> str:
        """The URL of its page in the web UI; without the host if there is no API, as in ``dag.test()``."""
        return page_of(self.api_url, self.dag_id, self.run_id, self.task_id, self.map_index)

    @property
    def log_url(self) -> str:
        """The URL of the try's log in the API; without the host if there is no API, as in ``dag.test()``."""
        from urllib.parse import quote  # its imports would slow down the writing of a DAG

        path = f"dags/{quote(self.dag_id, safe='')}/runs/{quote(self.run_id, safe='')}/tasks/{quote(self.task_id, safe='')}/logs"
        return f"{self.api_url}/api/v1/{path}?map_index={self.map_index}&try_number={self.try_number}"

    def xcom_push(self, key: str, value: Any) -> None:
        """Stores ``value`` for other tasks under ``key``. Raises :class:`XComError` for a value that cannot be stored."""
        self.xcoms.push(key, value)

    def xcom_pull(
        self,
        task_ids: str | Sequence[str] | None = None,
        key: str = RETURN_VALUE,
        *,
        map_indexes: int | None = None,
        default: Any = None,
        dag_id: str | None = None,
        run_id: str | None = None,
        include_prior_dates: bool = False,
    ) -> Any:
        """Returns what a task of this run pushed under ``key``, else ``default``; a list for a list of task ids.

        Without ``task_ids`` it is this task's own value. For a mapped task it is the list of all instances' values in map order, or
        with ``map_indexes`` the value of one; for a task of the same mapped group it is the value of the same index. ``run_id``
        names another run of the DAG. With ``include_prior_dates`` the value is the newest of this run and those with earlier
        logical dates. Values of other DAGs are not available (:class:`XComError`).
        """
        if dag_id not in (None, self.dag_id):
            raise XComError(
                f"Task {self.task_id!r} wants a value of DAG {dag_id!r}, which xcom_pull does not give. Write what others need to "
                "storage or into a Variable, or pass it on with an asset event."
            )
        if task_ids is not None and not isinstance(task_ids, str):
            where: dict[str, Any] = {"run_id": run_id, "include_prior_dates": include_prior_dates}
            return [self.xcom_pull(task_id, key, map_indexes=map_indexes, default=default, **where) for task_id in task_ids]
        other = None if run_id == self.run_id else run_id
        index: int | None = self.map_index
        if task_ids is None:
            task_id = self.task_id
        else:
            source = self.task.dag.get_task(task_ids)
            seen = self.task.index_seen(source, self.map_index)
            task_id, index = source.task_id, seen if map_indexes is None or not source.is_mapped else map_indexes
        if include_prior_dates and other is None:
            if index is None:
                raise XComError(f"Task {task_id!r} is mapped: include_prior_dates needs map_indexes=, which instance is meant.")
            prior = self.xcoms.prior_run(task_id, key, index)
            other = None if prior == self.run_id else prior
        found, value = self.xcoms.pull(task_id, key, index, other)
        return value if found else default

    def once(self, name: str, function: Callable[[], T]) -> T:
        """Returns what ``function()`` returned the first time. The value is stored durably under ``name``, and later calls return
        it without calling the function, in this try and in all later ones of this task, whatever happens to its workers. Clearing
        the task, or :meth:`forget`, begins anew. For an ``async def``, await the result.

        The value is of the types that results may have. When the process dies between the call and the storing, ``function`` is
        called again: give the outside system :meth:`once_key`, so that it notices.
        """
        kept: T = Kept(self.task_id, self.control).once(name, function)
        return kept

    def once_value(self, name: str, default: Any = None) -> Any:
        """Returns what :meth:`once` has stored under ``name``, without calling anything."""
        return Kept(self.task_id, self.control).value(name, default)

    def once_key(self, name: str) -> str:
        """Returns a unique key for :meth:`once`, the same each time until the task is cleared or the name forgotten."""
        return Kept(self.task_id, self.control).key(name)

    def forget(self, name: str) -> None:
        """Makes the next :meth:`once` of this name call its function again, with another key."""
        Kept(self.task_id, self.control).forget(name)

    def progress(self, label: str, done: int, total: int, **detail: Any) -> None:
        """Shows the progress of the try, in whole steps; the newest replaces the last one."""
        self.report_progress(str(label), int(done), int(total), detail)


class Context(dict[str, Any]):
    """The entries that :data:`CONTEXT_KEYS` names. Each of ``lazy_keys`` costs a question to the control plane when it is used."""

    lazy: Callable[[str], Any] | None = None
    lazy_keys: frozenset[str] = frozenset()

    def once(self, name: str, function: Callable[[], T]) -> T:
        """Works like :meth:`TaskInstance.once`; so do the next three."""
        kept: T = self["ti"].once(name, function)
        return kept

    def once_value(self, name: str, default: Any = None) -> Any:
        return self["ti"].once_value(name, default)

    def once_key(self, name: str) -> str:
        key: str = self["ti"].once_key(name)
        return key

    def forget(self, name: str) -> None:
        self["ti"].forget(name)

    def __missing__(self, key: str) -> Any:
        if key in self.lazy_keys and self.lazy is not None:
            self[key] = self.lazy(key)
            return self[key]
        cure = f" {MISSING_ENTRIES[key]}" if key in MISSING_ENTRIES else ""
        raise KeyError(f"The context has no {key!r}; it has: {', '.join(sorted(self))}.{cure}")


def make_context(
    dag: DAG,
    task: Task,
    run: DagRun,
    instance: TaskInstance,
    params: dict[str, Any],
    *,
    map_length: int | None,
    previous: Callable[[str], Any],
) -> Context:
    """``previous`` returns one of :data:`PREVIOUS_KEYS`."""
    from evenflow.sdk.templating.macros import MACROS, ds_nodash_of, ts_nodash_with_tz_of

    # A run triggered by hand may have no logical date. Then ds and ts have its due time, instead of failing as in Airflow.
    date = (run.logical_date or run.run_after).astimezone(UTC)
    context = Context(
        conn=Accessor(get_connection, ConnectionNotFound),
        dag=dag,
        dag_run=run,
        data_interval_start=run.data_interval_start,
        data_interval_end=run.data_interval_end,
        ds=date.strftime("%Y-%m-%d"),
        ds_nodash=date.strftime("%Y%m%d"),
        expanded_ti_count=map_length,
        inlet_events=InletEvents(task.task_settings.inlets, instance.control),
        inlets=list(task.task_settings.inlets),
        logical_date=run.logical_date,
        macros=MACROS,
        outlet_events=OutletEvents(task.task_settings.outlets),
        outlets=list(task.task_settings.outlets),
        params=RunParams(_with_own(task, params)),
        run_id=run.run_id,
        task=task,
        task_instance=instance,
        task_instance_key_str=f"{dag.dag_id}__{task.task_id}__{ds_nodash_of(date)}",
        templates_dict=None,
        test_mode=False,
        ti=instance,
        triggering_asset_events=TriggeringAssetEvents(instance.control),
        ts=date.isoformat(),
        ts_nodash=date.strftime("%Y%m%dT%H%M%S"),
        ts_nodash_with_tz=ts_nodash_with_tz_of(date),
        var=SimpleNamespace(
            value=Accessor(Variable.get, VariableNotFound),
            json=Accessor(lambda key: Variable.get(key, deserialize_json=True), VariableNotFound),
        ),
    )
    context.lazy, context.lazy_keys = previous, PREVIOUS_KEYS
    return context


def _with_own(task: Task, params: dict[str, Any]) -> dict[str, Any]:
    """Adds a task's own parameters where the run left the DAG's default, or the DAG has no such parameter."""
    own, declared = task.task_settings.params or {}, task.dag.header.params
    left = {name for name in own if name in declared and params.get(name) == declared[name].default}
    return {**own, **{name: value for name, value in params.items() if name not in left}}


current: ContextVar[Context | None] = ContextVar("evenflow_context", default=None)


def get_current_context() -> Context:
    """Returns the context of the task that is running here. Raises :class:`NoContext` anywhere else."""
    context = current.get()
    if context is None:
        raise NoContext(
            "get_current_context() was called where no task is running. Call it inside a function with @task or inside execute(), "
            "not at the "
            "top of the DAG file; in a thread of your own, pass the context on."
        )
    return context


class Accessor:
    """``conn.some_id`` and ``var.value.some_key`` of the context: each name is looked up when it is used."""

    def __init__(self, find: Callable[[str], Any], missing: type[Exception]) -> None:
        self._find, self._missing = find, missing

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._find(name)

    def __getitem__(self, name: str) -> Any:
        return self._find(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Returns ``default`` when the name is not defined; a forbidden name is still an error."""
        try:
            return self._find(name)
        except self._missing:
            return default

    def __repr__(self) -> str:
        return "<looked up by name>"
