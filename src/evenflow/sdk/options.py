"""The settings that every task takes, whatever it does: their names and types for authors, their values checked."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypedDict

from evenflow.core.callbacks import OF_TASKS
from evenflow.core.likeness import did_you_mean, meant_or
from evenflow.core.limits import INT32_MAX, INT32_MIN, MAX_LOSSES, MAX_NAME_CHARS, MAX_RETRIES, MAX_RETRY_DELAY_S
from evenflow.core.model import DEFAULT_EXECUTOR, DEFAULT_POOL, DEFAULT_QUEUE, WAITING_HOLDS, RetryRuleSpec
from evenflow.core.spec_size import check_own
from evenflow.core.trigger_rules import TriggerRule
from evenflow.core.weights import WeightRule
from evenflow.errors import BadId, BadSetting
from evenflow.sdk import callbacks
from evenflow.sdk.airflow_settings import TASK_SETTINGS, is_harmless, sends_no_mail
from evenflow.sdk.assets import Asset, AssetAlias, checked_assets
from evenflow.sdk.params import params_to_spec
from evenflow.sdk.retry_policy import ExceptionRetryPolicy
from evenflow.sdk.signature import keywords_of


class TaskOptions(TypedDict, total=False):
    """What ``@task(...)``, every operator and ``default_args`` take. Durations are a timedelta or seconds."""

    retries: int
    retry_delay: timedelta | float
    retry_exponential_backoff: bool | float  # the factor from one delay to the next; True is 2
    max_retry_delay: timedelta | float | None
    retry_jitter: float  # the share of a delay by which it may become longer, by chance
    retry_policy: ExceptionRetryPolicy | None  # which failures are worth another try
    infrastructure_retries: int  # how often its worker may be lost, or be unable to start it, without using up a try
    execution_timeout: timedelta | float | None
    execution_timeout_counts_waiting: bool  # whether it counts the time in which the task is deferred, too
    while_deferred: Mapping[str, str]  # "hold" or "release" for "pool", "task_limits", "run" and "executor", instead of the default
    depends_on_past: bool
    wait_for_downstream: bool
    pool: str
    pool_slots: int
    priority_weight: int
    weight_rule: WeightRule | str
    queue: str
    executor: str
    trigger_rule: TriggerRule | str
    max_active_tis_per_dag: int | None
    max_active_tis_per_dagrun: int | None
    task_display_name: str  # shown beside the id
    doc: str
    doc_md: str
    do_xcom_push: bool  # whether its result is kept, for other tasks
    multiple_outputs: bool | None  # its result is a dict, whose items others may pull by key
    params: Mapping[str, Any]  # of this task alone, instead of the DAG's defaults or beside them: values, or Param(...)
    outlets: Sequence[Asset | AssetAlias]  # its success is an event of each
    inlets: Sequence[Asset | AssetAlias]  # whose events it may read
    on_execute_callback: callbacks.Functions  # in the process of the try, before it
    on_success_callback: callbacks.Functions  # these are called on a worker, with the context
    on_failure_callback: callbacks.Functions
    on_retry_callback: callbacks.Functions
    on_skipped_callback: callbacks.Functions  # when the task itself says that it is skipped
    on_kill_callback: callbacks.Functions  # stops what a try has started outside, when it is ended early


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """Checked :class:`TaskOptions`. The fields are those of ``TaskSpec``, but for what is only for the process of a try, and for
    the weight, whose rule is not applied yet.
    """

    retries: int = 0
    retry_delay: float = 300.0
    retry_exponential_backoff: float = 0.0
    max_retry_delay: float | None = None
    retry_jitter: float = 0.0
    retry_rules: tuple[RetryRuleSpec, ...] = ()
    infrastructure_retries: int = MAX_LOSSES
    execution_timeout: float | None = None
    execution_timeout_counts_waiting: bool = True
    while_deferred: dict[str, str] | None = None
    depends_on_past: bool = False
    wait_for_downstream: bool = False
    pool: str = DEFAULT_POOL
    pool_slots: int = 1
    priority_weight: int = 1
    weight_rule: WeightRule = WeightRule.DOWNSTREAM
    queue: str = DEFAULT_QUEUE
    executor: str = DEFAULT_EXECUTOR
    trigger_rule: TriggerRule = TriggerRule.ALL_SUCCESS
    max_active_tis_per_dag: int | None = None
    max_active_tis_per_dagrun: int | None = None
    display_name: str = ""
    doc: str = ""
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


DISPLAY_NAME = f"a string of 1 to {MAX_NAME_CHARS} printable characters"

OWN_OPTIONS = frozenset(TaskOptions.__annotations__)
OPTION_NAMES = OWN_OPTIONS | TASK_SETTINGS.keys()


def check_options(options: Mapping[str, Any], where: str, kind: type | None = None) -> TaskSettings:
    """Raises :class:`BadSetting`, its message beginning with ``where``, for a name that is no setting or a value that is not
    allowed. ``kind`` is that of the task, whose own arguments may be meant by a name.
    """
    values: dict[str, Any] = {}
    for name, value in options.items():
        if name in _CHECKS:
            values[_FIELDS.get(name, name)] = _checked(name, value, where)
        elif name == "email" and sends_no_mail(options):
            continue
        elif not is_harmless(TASK_SETTINGS, name, value, where):
            raise BadSetting(f"{where}: there is no setting {name!r}. {_suggestion(name, kind)}")
    return TaskSettings(**values)


def changed(settings: TaskSettings, name: str, value: Any, where: str) -> TaskSettings:
    """With one option given another value. Raises :class:`BadSetting` as :func:`check_options` does."""
    return replace(settings, **{_FIELDS.get(name, name): _checked(name, value, where)})


def option_of(settings: TaskSettings, name: str) -> Any:
    """What an option is, by its name for authors."""
    return getattr(settings, _FIELDS.get(name, name))


def _checked(name: str, value: Any, where: str) -> Any:
    try:
        return _CHECKS[name](value)
    except _Refused as refused:
        near = did_you_mean(value, map(str, _NAMES[name])) if name in _NAMES and isinstance(value, str) else ""
        raise BadSetting(f"{where}: {name} must be {refused}, not {value!r}.{near}") from None


def is_display_name(text: str) -> bool:
    return bool(text.strip()) and text.isprintable() and len(text) <= MAX_NAME_CHARS


def check_id(kind: str, value: Any, where: str = "") -> str:
    """Raises :class:`BadId` unless ``value`` has the form that Airflow asks of a ``kind`` of id (DAG, task or group)."""
    pattern, allowed = _GROUP_ID if kind == "group" else _KEY
    shown = f"{where}: the" if where else "The"
    if not isinstance(value, str):
        raise BadId(f"{shown} {kind} id must be a string, not {value!r}.")
    if len(value) > MAX_NAME_CHARS:
        raise BadId(f"{shown} {kind} id {value[:40]!r}... has {len(value)} characters; at most {MAX_NAME_CHARS} are allowed.")
    if not pattern.fullmatch(value):
        raise BadId(f"{shown} {kind} id {value!r} may have {allowed} only, at least one. Try {_repaired(value, kind)!r}.")
    if kind == "DAG":
        check_own(value)
    return value


_KEY = re.compile(r"[\w.-]+"), "letters, digits, '_', '-' and '.'"
_GROUP_ID = re.compile(r"[\w-]+"), "letters, digits, '_' and '-'"


def _repaired(value: str, kind: str) -> str:
    return re.sub(r"[^\w-]" if kind == "group" else r"[^\w.-]", "_", value) or f"my_{kind.lower()}"


def _suggestion(name: str, kind: type | None) -> str:
    own = keywords_of(kind) if kind is not None else []
    return meant_or(name, [*_CHECKS, *own], f"There are: {', '.join(_CHECKS)}.")


class _Refused(Exception):
    """Says what the value must be."""


def _integer(low: int, high: int = INT32_MAX) -> Callable[[Any], int]:
    wanted = f"an integer from {low} to {high}" if high != INT32_MAX else f"an integer of at least {low}"

    def check(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise _Refused(wanted)
        return value

    return check


def _seconds(low: float, high: float = math.inf) -> Callable[[Any], float]:
    bounds = f"from {low:g} to {high:g}" if high < math.inf else "above 0" if low else "of at least 0"

    def check(value: Any) -> float:
        seconds = value.total_seconds() if isinstance(value, timedelta) else value
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not low <= seconds <= high or seconds == math.inf:
            raise _Refused(f"a timedelta or a number of seconds {bounds}")
        return float(seconds)

    return check


def _optional(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else check(value)


def _choice(choices: type[WeightRule] | type[TriggerRule]) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        try:
            return choices(value)
        except ValueError:
            raise _Refused(f"one of {', '.join(choices)}") from None

    return check


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_NAME_CHARS:
        raise _Refused(f"a string of 1 to {MAX_NAME_CHARS} characters")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Refused("a string")
    return value


def _display_name(value: Any) -> str:
    if not isinstance(value, str) or not is_display_name(value):
        raise _Refused(DISPLAY_NAME)
    return value


def _assets(value: Any) -> tuple[Asset | AssetAlias, ...]:
    found = checked_assets(value)
    if found is None:
        raise _Refused("a list of Asset(...) or AssetAlias(...)")
    return found


def _functions(value: Any) -> tuple[callbacks.Function, ...]:
    found = callbacks.checked_functions(value)
    if found is None:
        raise _Refused(callbacks.WANTED)
    return found


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Refused("True or False")
    return value


def _backoff(value: Any) -> float:
    if isinstance(value, bool):
        return 2.0 if value else 0.0
    if not isinstance(value, (int, float)) or not (value == 0 or 1 <= value <= _MAX_BACKOFF):
        raise _Refused(f"True, False or a factor from 1 to {_MAX_BACKOFF:g}")
    return float(value)


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise _Refused("a number from 0 to 1")
    return float(value)


def _policy(value: Any) -> tuple[RetryRuleSpec, ...]:
    if value is None:
        return ()
    if not isinstance(value, ExceptionRetryPolicy):
        raise _Refused("ExceptionRetryPolicy(rules=[RetryRule(...), ...])")
    try:
        return value.to_spec()
    except BadSetting as error:
        raise _Refused(f"a policy without errors ({error})") from None


def _params(value: Any) -> dict[str, Any] | None:
    """The values: nobody gives a run others."""
    if not isinstance(value, (Mapping, type(None))):
        raise _Refused("a dict of values or Param(...)")
    try:
        specs = params_to_spec(value or {}, "params")
    except BadSetting as error:
        raise _Refused(f"values without errors ({error})") from None
    required = [name for name, param in specs.items() if param.required]
    if required:
        raise _Refused(f"values, and {required[0]!r} has none: declare it for the DAG if a run is to be given it")
    return {name: param.default for name, param in specs.items()} or None


def _doc(value: Any) -> str:
    return "" if value is None else _text(value)


def _while_deferred(value: Any) -> dict[str, str] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or not value.keys() <= set(WAITING_HOLDS) or not {"hold", "release"} >= set(value.values()):
        names = ", ".join(repr(name) for name in WAITING_HOLDS)
        raise _Refused(f"a dict from some of {names} to 'hold' or 'release', e.g. {{'pool': 'release'}}")
    return {name: value[name] for name in WAITING_HOLDS if name in value} or None


_FIELDS = {"doc_md": "doc", "task_display_name": "display_name", "retry_policy": "retry_rules"}

_NAMES: dict[str, type[WeightRule] | type[TriggerRule]] = {"weight_rule": WeightRule, "trigger_rule": TriggerRule}

_MAX_BACKOFF = 100.0  # from a second to a day in four tries
_MIN_TIMEOUT_S = 0.001  # the resolution of the timers that enforce it

_CHECKS: dict[str, Callable[[Any], Any]] = {
    "retries": _integer(0, MAX_RETRIES),
    "retry_delay": _seconds(0, MAX_RETRY_DELAY_S),
    "retry_exponential_backoff": _backoff,
    "max_retry_delay": _optional(_seconds(0, MAX_RETRY_DELAY_S)),
    "retry_jitter": _share,
    "retry_policy": _policy,
    "infrastructure_retries": _integer(0, MAX_RETRIES),
    "execution_timeout": _optional(_seconds(_MIN_TIMEOUT_S)),
    "execution_timeout_counts_waiting": _flag,
    "while_deferred": _while_deferred,
    "depends_on_past": _flag,
    "wait_for_downstream": _flag,
    "pool": _name,
    "pool_slots": _integer(1),
    "priority_weight": _integer(INT32_MIN),
    "weight_rule": _choice(_NAMES["weight_rule"]),
    "queue": _name,
    "executor": _name,
    "trigger_rule": _choice(_NAMES["trigger_rule"]),
    "max_active_tis_per_dag": _optional(_integer(1)),
    "max_active_tis_per_dagrun": _optional(_integer(1)),
    "task_display_name": _display_name,
    "doc": _doc,
    "doc_md": _doc,
    "do_xcom_push": _flag,
    "multiple_outputs": _optional(_flag),
    "params": _params,
    "outlets": _assets,
    "inlets": _assets,
    **dict.fromkeys((*OF_TASKS, "on_kill_callback"), _functions),
}
