"""The options of tasks and DAGs: each with its type for authors, its meaning, the field that it fills, and a reader where the type
and the bounds of that field are not enough. Checks and the reference page come from here.
"""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from types import MappingProxyType, NoneType
from typing import Annotated, Any, TypedDict, get_args, get_type_hints

from evenflow.core.likeness import meant_or
from evenflow.core.limits import MAX_DEADLINES, MAX_TRY_MEMORY, MIN_TRY_MEMORY
from evenflow.core.model import DagSpec, Resources, RunParamSpec, TaskTerms, Unclaimed
from evenflow.core.quantities import bytes_of
from evenflow.core.quantities import memory as amount_of_memory
from evenflow.core.spec.size import bounds_of
from evenflow.core.trigger_rules import TriggerRule
from evenflow.core.weights import WeightRule
from evenflow.errors import BadSetting
from evenflow.sdk import callbacks
from evenflow.sdk.airflow_settings import DAG_OPTIONS, TASK_SETTINGS, is_harmless, sends_no_mail
from evenflow.sdk.assets import Asset, AssetAlias, AssetCondition, AssetOrTimeSchedule, checked_assets
from evenflow.sdk.callbacks import DeadlineAlert, checked_deadlines
from evenflow.sdk.readers import (
    Reader,
    Unfit,
    backoff,
    found_by,
    held_or_released,
    instance_of,
    listed_paths,
    paths,
    pod_override,
    policy,
    reader_of,
    values_of_params,
)
from evenflow.sdk.retry_policy import ExceptionRetryPolicy
from evenflow.sdk.signature import keywords_of
from evenflow.sdk.timetables import Timetable

ScheduleOption = str | timedelta | Timetable | AssetCondition | Sequence[AssetCondition] | AssetOrTimeSchedule
Paths = Sequence[str | os.PathLike[str]]


@dataclass(frozen=True, slots=True)
class Option:
    """An option apart from its name and its type for authors."""

    meaning: str
    field: str = ""  # of the settings that it fills; its own name if empty
    read: Reader | None = None  # by default, from the type and bounds of the field
    wanted: str = ""  # what the value must be, in better words than those of the bounds


_DOC = "Prose, for people."
_LINKS = "a dict from owners to links, which begin with https://, http:// or mailto:"
_PATTERNS = "a list of patterns of DAG ids, or of bundle:pattern"
_MEMORY, _CPU = (bounds_of(kind)[1][0] for kind in get_type_hints(Resources, include_extras=True).values())
SCHEDULE = "a cron expression, a preset such as '@daily', a timedelta, a timetable, assets, or None"
_read_functions = found_by(callbacks.checked_functions, callbacks.WANTED)
_read_assets = found_by(checked_assets, "a list of Asset(...) or AssetAlias(...)")


class TaskOptions(TypedDict, total=False):
    """Options of ``@task(...)``, every operator and ``default_args``. Durations are a timedelta or seconds."""

    retries: Annotated[int, Option("How often a failed try is repeated.")]
    retry_delay: Annotated[timedelta | float, Option("From the end of a failed try to the next one.")]
    retry_exponential_backoff: Annotated[
        bool | float, Option("The factor from one delay to the next; `True` is 2, `False` a constant delay.", read=backoff)
    ]
    max_retry_delay: Annotated[timedelta | float | None, Option("The longest delay that back-off may reach.")]
    retry_jitter: Annotated[float, Option("The share of a delay by which it may become longer, by chance.")]
    retry_policy: Annotated[
        ExceptionRetryPolicy | None, Option("Which failures are worth another try.", "retry_rules", read=policy)
    ]
    infrastructure_retries: Annotated[
        int, Option("How often, in all, its worker may be lost or be unable to start it without using up a try.")
    ]
    execution_timeout: Annotated[timedelta | float | None, Option("A try that runs longer is ended, and has failed.")]
    execution_timeout_counts_waiting: Annotated[bool, Option("Whether it counts the time in which the task is deferred, too.")]
    reuse: Annotated[
        bool, Option("Whether its tries may follow each other, and those of other such tasks of the DAG version, in one process.")
    ]
    resources: Annotated[
        Resources | None,
        Option(
            'What the processes of a try may take at most: `resources(memory="2GiB", cpu=1.5)`. It has a process of its own then.',
            read=instance_of((Resources, NoneType), 'resources(memory="2GiB", cpu=1.5)'),
        ),
    ]
    pod_override: Annotated[
        Mapping[str, Any] | None,
        Option("What its pods have that the template of its executor does not say, where that is Kubernetes.", read=pod_override),
    ]
    while_deferred: Annotated[
        Mapping[str, str],
        Option(
            '"hold" or "release" for "pool", "task_limits", "run" and "executor", instead of the default.', read=held_or_released
        ),
    ]
    depends_on_past: Annotated[bool, Option("Waits until its own instances in the run before have ended well.")]
    wait_for_downstream: Annotated[bool, Option("And those directly downstream of it.")]
    pool: Annotated[str, Option("The pool whose slots the task takes.")]
    pool_slots: Annotated[int, Option("How many slots of the pool it takes.")]
    priority_weight: Annotated[int, Option("Higher starts first where a limit holds tasks back.")]
    weight_rule: Annotated[
        WeightRule | str, Option("Whether the weights of downstream or of upstream tasks are added, or none (`absolute`).")
    ]
    queue: Annotated[str, Option("Which workers may run it: those that serve this queue.")]
    queued_timeout: Annotated[
        timedelta | float | None, Option("How long a try may wait for a worker before `on_queued_timeout` says what becomes of it.")
    ]
    on_queued_timeout: Annotated[
        Unclaimed | str,
        Option('What then: "tell", it waits on, and metrics and history say so; "fail"; "elsewhere", it goes to `other_queue`.'),
    ]
    other_queue: Annotated[str | None, Option('The queue that it goes to, where `on_queued_timeout` is "elsewhere".')]
    executor: Annotated[str | None, Option("What its queue belongs to, for who wants it to be checked: `evenflow executors list`.")]
    trigger_rule: Annotated[TriggerRule | str, Option("Which ends of its upstream tasks let it start.")]
    max_active_tis_per_dag: Annotated[int | None, Option("How many instances may run at once in all runs of the DAG together.")]
    max_active_tis_per_dagrun: Annotated[
        int | None, Option("How many instances may run at once in one run: a limit for mapped tasks.")
    ]
    task_display_name: Annotated[str, Option("Shown beside the id.", "display_name")]
    doc: Annotated[str | None, Option(_DOC)]
    doc_md: Annotated[str | None, Option("The same as `doc`.", "doc")]
    do_xcom_push: Annotated[bool, Option("Whether its result is kept, for other tasks.")]
    multiple_outputs: Annotated[bool | None, Option("Its result is a dict, whose items others may pull by key.")]
    params: Annotated[
        Mapping[str, Any],
        Option(
            "Values that it reads as `params` instead of the DAG's defaults, or beside them: a dict of values or `Param(...)`.",
            read=values_of_params,
        ),
    ]
    outlets: Annotated[Sequence[Asset | AssetAlias], Option("Its success is an event of each.", read=_read_assets)]
    inlets: Annotated[Sequence[Asset | AssetAlias], Option("Whose events it may read.", read=_read_assets)]
    on_execute_callback: Annotated[callbacks.Functions, Option("In the process of the try, before it.", read=_read_functions)]
    on_success_callback: Annotated[
        callbacks.Functions, Option("These are called on a worker, with the context.", read=_read_functions)
    ]
    on_failure_callback: Annotated[callbacks.Functions, Option("Called when it has failed for good.", read=_read_functions)]
    on_retry_callback: Annotated[
        callbacks.Functions, Option("Called when a try failed and another one follows.", read=_read_functions)
    ]
    on_skipped_callback: Annotated[
        callbacks.Functions, Option("When the task itself says that it is skipped.", read=_read_functions)
    ]
    on_kill_callback: Annotated[
        callbacks.Functions, Option("Stops what a try has started outside, when it is ended early.", read=_read_functions)
    ]


def resources(*, memory: str | int | None = None, cpu: float | None = None) -> Resources:
    """Makes the option ``resources`` of a task: ``memory`` limits all processes of a try together, as ``"2GiB"``, ``"500MB"`` or
    bytes; ``cpu`` is how many processors they keep busy: 1.5 is one and a half. Raises :class:`BadSetting`.
    """
    if memory is None and cpu is None:
        raise BadSetting('resources() limits nothing: give it memory, cpu or both, e.g. resources(memory="2GiB", cpu=1.5).')
    size = bytes_of(memory) if isinstance(memory, str) else memory
    if memory is not None and (not isinstance(size, int) or isinstance(size, bool) or _MEMORY.flaw(size)):
        ends = f"{amount_of_memory(MIN_TRY_MEMORY)} to {amount_of_memory(MAX_TRY_MEMORY)}"
        raise BadSetting(f'resources: memory must be bytes or a text such as "2GiB" or "500MB", from {ends}, not {memory!r:.300}.')
    if cpu is not None and (not isinstance(cpu, (int, float)) or isinstance(cpu, bool) or _CPU.flaw(cpu)):
        raise BadSetting(f"resources: cpu must be a number of processors {_CPU}, not {cpu!r:.300}.")
    return Resources(memory=size, cpu=None if cpu is None else float(cpu))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings(TaskTerms):
    """Checked :class:`TaskOptions`: the scheduler's terms, what only the process of a try knows, and the weight's rule."""

    weight_rule: WeightRule = WeightRule.DOWNSTREAM
    do_xcom_push: bool = True
    multiple_outputs: bool | None = None
    params: dict[str, Any] | None = None
    outlets: tuple[Asset | AssetAlias, ...] = ()
    inlets: tuple[Asset | AssetAlias, ...] = ()
    on_execute_callback: tuple[callbacks.Function, ...] = ()
    on_success_callback: tuple[callbacks.Function, ...] = ()
    on_failure_callback: tuple[callbacks.Function, ...] = ()
    on_retry_callback: tuple[callbacks.Function, ...] = ()
    on_skipped_callback: tuple[callbacks.Function, ...] = ()
    on_kill_callback: tuple[callbacks.Function, ...] = ()


class DagOptions(TypedDict, total=False):
    """Options of ``DAG(...)`` and ``@dag(...)`` besides the id. Durations are a timedelta or seconds."""

    schedule: Annotated[
        ScheduleOption | None,
        Option(
            'A cron expression, "@daily", "@once", a timetable, assets, ...; None: runs when triggered.', read=lambda value: value
        ),
    ]
    start_date: Annotated[
        datetime | None,
        Option(
            "Its time zone is that of the schedule; without one it is the default one.",
            read=instance_of(datetime, "a datetime, e.g. datetime(2026, 1, 1, tzinfo=ZoneInfo('Europe/Berlin'))"),
        ),
    ]
    end_date: Annotated[datetime | None, Option("No run is scheduled after it.", read=instance_of(datetime, "a datetime"))]
    catchup: Annotated[bool, Option("Whether runs that were due while nothing ran are created late.")]
    params: Annotated[
        Mapping[str, Any], Option("Defaults, or Param(...).", read=instance_of(Mapping, "a dict of defaults or Param(...)"))
    ]
    default_args: Annotated[
        Mapping[str, Any],
        Option(
            "Settings for all tasks that do not set them.",
            read=instance_of(Mapping, f"a dict of task settings ({', '.join(sorted(TaskOptions.__annotations__))})"),
        ),
    ]
    tags: Annotated[Sequence[str], Option("For people.")]
    max_active_runs: Annotated[int | None, Option("How many runs may be running at once; `None`: any number.")]
    max_active_tasks: Annotated[int | None, Option("How many tasks of one run may run at once; `None`: any number.")]
    max_map_length: Annotated[int, Option("How many instances a mapped task, or each task of a mapped group, may have.")]
    dagrun_timeout: Annotated[timedelta | float | None, Option("From the start of a run; then it fails.")]
    max_consecutive_failed_dag_runs: Annotated[int, Option("So many failed runs in a row pause the DAG; 0: never.")]
    description: Annotated[str, Option("One line, for people.")]
    doc_md: Annotated[str, Option(_DOC, "doc")]
    owner: Annotated[str, Option("Whom to ask.")]
    owner_links: Annotated[Mapping[str, str], Option('Where to find owners: {"ops": "mailto:ops@example.com"}.', wanted=_LINKS)]
    dag_display_name: Annotated[str, Option("Shown beside the id.", "display_name")]
    is_paused_upon_creation: Annotated[
        bool | None, Option("Whether it begins paused; else the setting `dags_are_paused_at_creation` says.")
    ]
    on_success_callback: Annotated[
        callbacks.Functions, Option("Of a run: called on a worker, with the context.", read=_read_functions)
    ]
    on_failure_callback: Annotated[callbacks.Functions, Option("The same of a run that has failed.", read=_read_functions)]
    deadline: Annotated[
        DeadlineAlert | Sequence[DeadlineAlert],
        Option(
            "Until when a run is to have ended.",
            "deadlines",
            read=found_by(checked_deadlines, f"a DeadlineAlert, or a list of at most {MAX_DEADLINES}"),
        ),
    ]
    fail_fast: Annotated[bool, Option("The first failure for good ends the run.")]
    reset_by: Annotated[
        Sequence[str],
        Option("Patterns of DAG ids, or bundle:pattern, whose tasks may clear runs that they did not trigger.", wanted=_PATTERNS),
    ]
    template_searchpath: Annotated[
        str | os.PathLike[str] | Paths,
        Option("Folders of files that templates name.", read=found_by(paths, "a folder, or a list of folders")),
    ]
    data_files: Annotated[
        Paths,
        Option(
            "Files and folders beside the DAG file that its tasks read: they travel with it.",
            read=found_by(listed_paths, "a list of files and folders beside the DAG file"),
        ),
    ]
    user_defined_macros: Annotated[
        Mapping[str, Any],
        Option("Names that templates may use.", read=instance_of(Mapping, "a dict of names that templates may use")),
    ]
    user_defined_filters: Annotated[
        Mapping[str, Callable[..., Any]],
        Option("Filters that templates may use.", read=instance_of(Mapping, "a dict of filters that templates may use")),
    ]
    render_template_as_native_obj: Annotated[
        bool, Option("What a template renders to is read as a Python literal where it is one.")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Checked :class:`DagOptions`: what is known of a DAG before it has tasks."""

    spec: DagSpec  # without tasks and groups
    default_args: dict[str, Any]
    on_success_callback: tuple[callbacks.Function, ...] = ()
    on_failure_callback: tuple[callbacks.Function, ...] = ()
    deadlines: tuple[DeadlineAlert, ...] = ()
    template_searchpath: tuple[str, ...] = ()
    data_files: tuple[str, ...] = ()
    user_defined_macros: Mapping[str, Any] = field(default_factory=dict)
    user_defined_filters: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    render_template_as_native_obj: bool = False

    @property
    def params(self) -> dict[str, RunParamSpec]:
        return self.spec.params


OWN_OPTIONS = frozenset(TaskOptions.__annotations__)
OPTION_NAMES = OWN_OPTIONS | TASK_SETTINGS.keys()
DAG_OPTION_NAMES = frozenset(DagOptions.__annotations__)
_AS_GIVEN = ("schedule", "start_date", "end_date", "default_args")


def check_options(options: Mapping[str, Any], where: str, kind: type | None = None) -> TaskSettings:
    """Raises :class:`BadSetting`, with a message that begins with ``where``, for an unknown name or a forbidden value. ``kind`` is
    the task's class, whose own arguments may be meant by a name.
    """
    values: dict[str, Any] = {}
    for name, value in options.items():
        if name in OWN_OPTIONS:
            values[field_of_task(name)] = _checked(_of_tasks(), name, value, where)
        elif name == "email" and sends_no_mail(options):
            continue
        elif not is_harmless(TASK_SETTINGS, name, value, where):
            own = keywords_of(kind) if kind is not None else []
            hint = meant_or(name, [*TaskOptions.__annotations__, *own], f"There are: {', '.join(TaskOptions.__annotations__)}.")
            raise BadSetting(f"{where}: there is no setting {name!r}. {hint}")
    return TaskSettings(**values)


def changed(settings: TaskSettings, name: str, value: Any, where: str) -> TaskSettings:
    """Returns the settings with another value of one option. Raises :class:`BadSetting` like :func:`check_options`."""
    return replace(settings, **{field_of_task(name): _checked(_of_tasks(), name, value, where)})


def option_of(settings: TaskSettings, name: str) -> Any:
    """Returns the value of an option, by its name for authors."""
    return getattr(settings, field_of_task(name))


def check_dag_options(options: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Returns the given values by the fields of :class:`Header` and ``DagSpec`` that they fill. Raises :class:`BadSetting`.

    Dates may be among ``default_args``, as in files of Airflow.
    """
    for_all = options.get("default_args")
    dates = {name: for_all.get(name) for name in ("start_date", "end_date")} if isinstance(for_all, Mapping) else {}
    values: dict[str, Any] = {}
    for name, value in {**dates, **options}.items():
        if name not in DAG_OPTION_NAMES:
            if is_harmless(DAG_OPTIONS, name, value, where):
                continue
            hint = meant_or(name, DagOptions.__annotations__, f"There are: {', '.join(DagOptions.__annotations__)}.")
            raise BadSetting(f"{where}: there is no option {name!r}. {hint}")
        if value is not None or name in ("max_active_runs", "max_active_tasks"):
            values[_of_dags()[name][0]] = _checked(_of_dags(), name, value, where)
    return values


def option_of_dag(header: Header, options: Mapping[str, Any], name: str) -> Any:
    """Returns the value of an option, by its name for authors. It cannot be changed in place, because that would have no effect."""
    if name in _AS_GIVEN:
        return options.get(name)
    if name == "params":
        return MappingProxyType({each: param.default for each, param in header.params.items()})
    filled = _of_dags()[name][0]
    return getattr(header if hasattr(header, filled) else header.spec, filled)


def field_of_task(name: str) -> str:
    """Returns the field of :class:`TaskSettings` that an option fills."""
    return _of_tasks()[name][0]


@functools.cache
def _of_tasks() -> dict[str, tuple[str, Reader]]:
    """Returns for each option the field that it fills, and its reader."""
    return _table(TaskOptions, TaskSettings)


@functools.cache
def _of_dags() -> dict[str, tuple[str, Reader]]:
    return _table(DagOptions, DagSpec, Header)


def _table(options: Any, *records: Any) -> dict[str, tuple[str, Reader]]:
    kinds = {name: kind for record in records for name, kind in get_type_hints(record, include_extras=True).items()}
    defaults = {each.name: each.default for record in records for each in fields(record)}
    found: dict[str, tuple[str, Reader]] = {}
    for name, annotation in options.__annotations__.items():
        given, option = get_args(annotation)
        filled = option.field or name
        read = option.read or reader_of(kinds[filled], given, defaults[filled])
        found[name] = filled, _in_words(read, option.wanted) if option.wanted else read
    return found


def _in_words(read: Reader, wanted: str) -> Reader:
    def check(value: Any) -> Any:
        try:
            return read(value)
        except Unfit:
            raise Unfit(wanted) from None

    return check


def _checked(table: Mapping[str, tuple[str, Reader]], name: str, value: Any, where: str) -> Any:
    try:
        return table[name][1](value)
    except Unfit as unfit:
        raise BadSetting(f"{where}: {name} must be {unfit}, not {value!r:.300}.{unfit.near}") from None
