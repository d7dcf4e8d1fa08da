"""Settings of DAGs and tasks under Airflow 2's names: each is passed on under its present name, with a warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from functools import partial, wraps
from pathlib import Path
from types import ModuleType
from typing import Any

import airflow
from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, BaseOperator, TriggerRule
from airflow.task.trigger_rule import TriggerRule as RuleOfCore

from evenflow.airflow.airflow2.old_settings import OF_PAGES, RENAMED_OF_CALLS, RENAMED_OF_DAGS, RENAMED_OF_TASKS, VALUES_OF_CALLS
from evenflow.core.trigger_rules import RENAMED

_LIBRARIES = (*(f"{path}/" for path in airflow.__path__), f"{Path(__file__).parents[2]}/")


def install() -> None:
    """Installs the translations. A second call does nothing."""
    _translate(DAG, _of_dag)
    _translate(BaseOperator, _of_task)
    for kind in (BashOperator, TriggerDagRunOperator):
        _translate(kind, partial(_renamed, names=RENAMED_OF_CALLS[kind.__name__]))
    for old, now in RENAMED_OF_DAGS.items():
        setattr(DAG, old, _OldAttribute(old, now))
    for rules in (TriggerRule, RuleOfCore):
        for old in RENAMED:
            setattr(rules, old.upper(), _OldRule(old))


def translate_values_of(module: ModuleType) -> None:
    """Installs the translations of values for the operators of a provider's module, which has just been loaded."""
    for name, values in VALUES_OF_CALLS[module.__name__].items():
        _translate(getattr(module, name), partial(_other_values, values=values))


def _translate(kind: type, translated: Callable[[dict[str, Any]], None]) -> None:
    real = kind.__init__  # type: ignore[misc]
    if getattr(real, "of_airflow2", False):
        return

    @wraps(real)
    def init(self: Any, *args: Any, **given: Any) -> None:
        translated(given)
        real(self, *args, **given)

    init.of_airflow2 = True  # type: ignore[attr-defined]
    kind.__init__ = init  # type: ignore[misc]


def _of_dag(given: dict[str, Any]) -> None:
    _renamed(given, RENAMED_OF_DAGS)
    for name in OF_PAGES & given.keys():
        del given[name]
        _warn(f"{name}= was for pages of Airflow 2. Leave it out.")
    _left_out(given, "sla_miss_callback")


def _of_task(given: dict[str, Any]) -> None:
    _renamed(given, RENAMED_OF_TASKS)
    if given.pop("provide_context", None) is not None:
        _warn("provide_context= is of Airflow 1. Leave it out: a function gets the entries of the context that it names.")
    _left_out(given, "sla")
    if (rule := given.get("trigger_rule")) in RENAMED:
        given["trigger_rule"] = str(RENAMED[rule])
        _warn(f"trigger_rule={rule!r} is of Airflow 2. Write trigger_rule={str(RENAMED[rule])!r}.")


def _left_out(given: dict[str, Any], name: str) -> None:
    """Takes out what Airflow 3 ignores, with a warning of its own that only its developers see."""
    if given.pop(name, None) is not None:
        _warn(f"{name}= does nothing since Airflow 3. Write deadline=DeadlineAlert(...) of the DAG.")


class _OldRule:
    """Stands in the class of an enum beside its members, and returns one of them."""

    def __init__(self, old: str) -> None:
        self._old = old

    def __get__(self, rule: Any, rules: Any) -> Any:
        now = RENAMED[self._old]
        _warn(f"TriggerRule.{self._old.upper()} is of Airflow 2. Write TriggerRule.{now.name}.")
        return rules(str(now))


class _OldAttribute:
    """Is read from a DAG that has no attribute of its own with this name, as for the DAG of a ``SubDagOperator``."""

    def __init__(self, old: str, now: str) -> None:
        self._old, self._now = old, now

    def __get__(self, dag: Any, kind: type) -> Any:
        if dag is None:
            return self
        _warn(f"The attribute {self._old} of a DAG is of Airflow 2. Write {self._now}.")
        return getattr(dag, self._now)


def _renamed(given: dict[str, Any], names: Mapping[str, str]) -> None:
    for old in names.keys() & given.keys():
        value, now = given.pop(old), names[old]
        if value is not None or now not in given:
            given[now] = value
        _warn(f"{old}= is of Airflow 2. Write {now}=.")


def _other_values(given: dict[str, Any], values: Mapping[str, Mapping[Any, str]]) -> None:
    for name, now in values.items():
        value = given.get(name)
        if isinstance(value, bool) and value in now:
            given[name] = now[value]
            _warn(f"{name}={value!r} is of Airflow 2. Write {name}={now[value]!r}.")


def _warn(message: str) -> None:
    """Warns at the line of the author's file, however deep in operators of operators the setting is."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, DeprecationWarning, stacklevel=level)
