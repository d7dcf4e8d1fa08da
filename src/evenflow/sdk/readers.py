"""Reads an author's value by the type and the bounds of the field that it fills, or refuses it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from evenflow.core.bounds import Between, Bound, Chars, Items
from evenflow.core.deferral import HOLD, RELEASE
from evenflow.core.likeness import did_you_mean
from evenflow.core.limits import MAX_BACKOFF, MAX_NAME_CHARS, MAX_POD_OVERRIDE, MAX_WAIT_S
from evenflow.core.model import WAITING_HOLDS, RetryRuleSpec
from evenflow.core.pods.override import PodOverride
from evenflow.core.spec.size import bounds_of, check_own
from evenflow.core.trigger_rules import RENAMED, TriggerRule
from evenflow.errors import BadId, BadSetting
from evenflow.sdk.params import params_to_spec
from evenflow.sdk.retry_policy import ExceptionRetryPolicy

Reader = Callable[[Any], Any]


class Unfit(Exception):
    """Says what the value must be; ``near`` is a sentence with a suggestion."""

    def __init__(self, wanted: str, near: str = "") -> None:
        super().__init__(wanted)
        self.near = near


def reader_of(kind: Any, given: Any, default: Any) -> Reader:
    """Returns a reader for a field of this ``kind``, including its bounds, whose values authors give as the type ``given``. A None
    that is not a value of the field means its ``default``.
    """
    plain, bounds = bounds_of(kind)
    read = _reader(plain, bounds, timed=timedelta in _alternatives(given))
    if NoneType in _alternatives(kind):
        return _or_none(read, None)
    return _or_none(read, default) if NoneType in _alternatives(given) else read


def instance_of(kinds: type | tuple[type, ...], wanted: str) -> Reader:
    """Returns a reader that takes a value as it is."""

    def check(value: Any) -> Any:
        if not isinstance(value, kinds):
            raise Unfit(wanted)
        return value

    return check


def seconds(between: Between) -> Reader:
    """Returns a reader of a timedelta, or a number of seconds."""

    def check(value: Any) -> float:
        given = value.total_seconds() if isinstance(value, timedelta) else value
        if not isinstance(given, (int, float)) or isinstance(given, bool) or between.flaw(given):
            raise Unfit(f"a timedelta or a number of seconds {between}")
        return float(given)

    return check


wait_in_seconds = seconds(Between(0, MAX_WAIT_S))


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Unfit("True or False")
    return value


def backoff(value: Any) -> float:
    if isinstance(value, bool):
        return 2.0 if value else 0.0
    if not isinstance(value, (int, float)) or not (value == 0 or 1 <= value <= MAX_BACKOFF):
        raise Unfit(f"True, False or a factor from 1 to {MAX_BACKOFF:g}")
    return float(value)


def policy(value: Any) -> tuple[RetryRuleSpec, ...]:
    if value is None:
        return ()
    if not isinstance(value, ExceptionRetryPolicy):
        raise Unfit("ExceptionRetryPolicy(rules=[RetryRule(...), ...])")
    try:
        return value.to_spec()
    except BadSetting as error:
        raise Unfit(f"a policy without errors ({error})") from None


def pod_override(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    wanted = "a part of a pod, such as {'spec': {'nodeSelector': {'disk': 'ssd'}}}"
    if not isinstance(value, Mapping):
        raise Unfit(wanted)
    if flaw := PodOverride(MAX_POD_OVERRIDE).flaw(dict(value)):
        raise Unfit(f"{wanted}, and this {flaw}")
    return dict(value)


def held_or_released(value: Any) -> dict[str, str] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or not value.keys() <= set(WAITING_HOLDS) or not {HOLD, RELEASE} >= set(value.values()):
        names = ", ".join(repr(name) for name in WAITING_HOLDS)
        raise Unfit(f"a dict from some of {names} to 'hold' or 'release', e.g. {{'pool': 'release'}}")
    return {name: value[name] for name in WAITING_HOLDS if name in value} or None


def values_of_params(value: Any) -> dict[str, Any] | None:
    """Reads the parameters of a task. They need values, because a run gives it no others."""
    if not isinstance(value, (Mapping, type(None))):
        raise Unfit("a dict of values or Param(...)")
    try:
        specs = params_to_spec(value or {}, "params")
    except BadSetting as error:
        raise Unfit(f"values without errors ({error})") from None
    required = [name for name, param in specs.items() if param.required]
    if required:
        raise Unfit(f"values, and {required[0]!r} has none: declare it for the DAG if a run is to be given it")
    return {name: param.default for name, param in specs.items()} or None


def found_by(check: Callable[[Any], Any], wanted: str) -> Reader:
    """Returns a reader by a ``check``, which returns None for what is not ``wanted``."""

    def read(value: Any) -> Any:
        found = check(value)
        if found is None:
            raise Unfit(wanted)
        return found

    return read


def paths(value: Any) -> tuple[str, ...] | None:
    listed = [value] if isinstance(value, (str, os.PathLike)) else value
    return listed_paths(listed)


def listed_paths(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, (list, tuple)) or not all(isinstance(path, (str, os.PathLike)) for path in value):
        return None
    return tuple(os.fspath(path) for path in value)


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (UnionType, Union) else (kind,)


def _reader(plain: Any, bounds: list[Bound], *, timed: bool) -> Reader:
    origin, parts = get_origin(plain), get_args(plain)
    if plain is bool:
        return flag
    if isinstance(plain, type) and issubclass(plain, StrEnum):
        return _choice(plain)
    match bounds:
        case [Between() as between]:
            return _integer(between) if plain is int else seconds(between) if timed else _number(between)
        case [Chars() as chars]:
            return _text(chars)
        case [Items() as items] if origin is tuple:
            return _texts(items, bounds_of(parts[0])[1][0])
        case [Items() as items] if origin is dict:
            return _text_by_text(items, *(bounds_of(part)[1][0] for part in parts))
        case _:
            raise TypeError(f"Nothing says how {plain!r} with {bounds!r} is read.")


def _or_none(read: Reader, default: Any) -> Reader:
    def check(value: Any) -> Any:
        try:
            return default if value is None else read(value)
        except Unfit as unfit:
            raise Unfit(f"{unfit}, or None") from None

    return check


def _integer(between: Between) -> Reader:
    def check(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or between.flaw(value):
            raise Unfit(f"an integer {between}")
        return value

    return check


def _number(between: Between) -> Reader:
    def check(value: Any) -> float:
        if not isinstance(value, (int, float)) or isinstance(value, bool) or between.flaw(value):
            raise Unfit(f"a number {between}")
        return float(value)

    return check


def _choice(choices: type[StrEnum]) -> Reader:
    def check(value: Any) -> StrEnum:
        try:
            return choices(value)
        except ValueError:
            near = _instead(value, choices) if isinstance(value, str) else ""
            raise Unfit(f"one of {', '.join(choices)}", near) from None

    return check


def _instead(value: str, choices: type[StrEnum]) -> str:
    if choices is TriggerRule and value in RENAMED:
        return f" Write {RENAMED[value]}."
    return did_you_mean(value, map(str, choices))


def _text(chars: Chars) -> Reader:
    def check(value: Any) -> str:
        if not isinstance(value, str) or chars.flaw(value):
            raise Unfit(str(chars))
        return value

    return check


def _texts(items: Items, each: Bound) -> Reader:
    """Returns a reader of a list of texts, in order and without repetitions."""

    def check(value: Any) -> tuple[str, ...]:
        if not isinstance(value, (list, tuple, set, frozenset)) or items.flaw(value):
            raise Unfit(wanted)
        if not all(isinstance(text, str) and not each.flaw(text) for text in value):
            raise Unfit(wanted)
        return tuple(sorted(set(value)))

    wanted = f"a list of {items}, each {each}"
    return check


def _text_by_text(items: Items, key: Bound, item: Bound) -> Reader:
    def check(value: Any) -> dict[str, str]:
        if not isinstance(value, Mapping) or items.flaw(value):
            raise Unfit(wanted)
        texts = [*((name, key) for name in value), *((text, item) for text in value.values())]
        if not all(isinstance(text, str) and not bound.flaw(text) for text, bound in texts):
            raise Unfit(wanted)
        return dict(value)

    wanted = f"a dict of {items}, from {key} to {item}"
    return check


def check_id(kind: str, value: Any, where: str = "") -> str:
    """Raises :class:`BadId` unless ``value`` has Airflow's form for a ``kind`` of id (DAG, task or group)."""
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
