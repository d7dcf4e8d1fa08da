"""An option stands once: what authors may say, what is stored and what the API accepts have one type, one bound and one default."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, get_args, get_overloads, get_type_hints

import pytest

from evenflow.core import model
from evenflow.core.bounds import Between
from evenflow.core.model import DagSpec, TaskSpec, TaskTerms
from evenflow.core.spec.size import bounds_of, check_size
from evenflow.errors import BadSetting, DagError
from evenflow.sdk.operators import decorators
from evenflow.sdk.operators.bash import BashFunctionOperator
from evenflow.sdk.operators.branching import ShortCircuitOperator
from evenflow.sdk.operators.decorators import TaskDecorator
from evenflow.sdk.operators.isolated_tasks import (
    BranchExternalPythonOperator,
    BranchPythonVirtualenvOperator,
    ExternalPythonOperator,
    PythonVirtualenvOperator,
)
from evenflow.sdk.operators.sensors import PythonSensor
from evenflow.sdk.operators.spark_task import SparkOperator
from evenflow.sdk.options import DagOptions, Header, TaskOptions, TaskSettings, check_dag_options, check_options

RECORDS = [each for each in vars(model).values() if dataclasses.is_dataclass(each) and each.__module__ == model.__name__]
WALKED = {  # what core.spec.shape or core.timetable follows, and what is one of a few words there
    "Schedule": {"kind", "assets"},
    "MapInput": {"name", "length", "task", "key", "combine", "parts"},
    "Mapping": {"inputs", "kind"},
    "GroupSpec": {"parent"},
    "TaskSpec": {"upstream", "group"},
    "DeadlineSpec": {"reference", "at"},
    "DagSpec": {"format"},
}


def hints(*records: Any) -> dict[str, Any]:
    return {name: kind for record in records for name, kind in get_type_hints(record, include_extras=True).items()}


def filled(options: Any) -> dict[str, str]:
    """Option to field."""
    return {name: get_args(kind)[1].field or name for name, kind in options.__annotations__.items()}


def bounded(options: Any, *records: Any) -> list[tuple[str, str, Any]]:
    """(option, field, bound) of the numbers that are stored as they are said."""
    kinds = hints(*records)
    found = [(name, field, bounds_of(kinds[field])[1]) for name, field in filled(options).items() if field in kinds]
    return [(name, field, bounds[0]) for name, field, bounds in found if bounds and isinstance(bounds[0], Between)]


def test_every_option_fills_a_field_and_every_field_is_filled() -> None:
    assert set(filled(TaskOptions).values()) == set(hints(TaskSettings))
    made = {
        "dag_id",
        "tasks",
        "groups",
        "assets",
        "callbacks",
        "default_timezone",
        "environment",
        "format",
    }  # from what else is known of a DAG
    assert set(filled(DagOptions).values()) == set(hints(DagSpec, Header)) - made - {"spec"}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_whatever_could_grow_has_a_bound(record: Any) -> None:
    """R-SE2"""
    free = {
        name
        for name, kind in hints(record).items()
        if not bounds_of(kind)[1] and any(word in str(kind) for word in ("str", "int", "float", "tuple", "Any"))
    }
    nested = {name for name in free if "Annotated" in str(hints(record)[name])}  # its parts have some
    assert free - nested == WALKED.get(record.__name__, set())


@pytest.mark.parametrize(("name", "field", "bound"), bounded(TaskOptions, TaskTerms))
def test_author_and_api_are_held_to_one_bound_of_a_task(name: str, field: str, bound: Between) -> None:
    for value in (bound.least, bound.most):
        settings = check_options({name: value}, "here")
        check_size(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="t", operator="o", **{field: getattr(settings, field)}),)))
    for value in (bound.least - 1, bound.most + 1):
        with pytest.raises(BadSetting, match=rf"^here: {name} must be "):
            check_options({name: value}, "here")
        with pytest.raises(DagError, match=rf"task 't', {field}: .* is (not|above) "):
            check_size(DagSpec(dag_id="d", tasks=(TaskSpec(task_id="t", operator="o", **{field: value}),)))


@pytest.mark.parametrize(("name", "field", "bound"), bounded(DagOptions, DagSpec))
def test_author_and_api_are_held_to_one_bound_of_a_dag(name: str, field: str, bound: Between) -> None:
    for value in (bound.least, bound.most):
        check_size(DagSpec(dag_id="d", tasks=(), **check_dag_options({name: value}, "here")))
    for value in (bound.least - 1, bound.most + 1):
        with pytest.raises(BadSetting, match=rf"^here: {name} must be "):
            check_dag_options({name: value}, "here")
        with pytest.raises(DagError, match=rf"{field}: .* is (not|above) "):
            check_size(DagSpec(dag_id="d", tasks=(), **{field: value}))


KINDS = {
    "bash": BashFunctionOperator,
    "sensor": PythonSensor,
    "spark": SparkOperator,
    "short_circuit": ShortCircuitOperator,
    "virtualenv": PythonVirtualenvOperator,
    "external_python": ExternalPythonOperator,
    "branch_virtualenv": BranchPythonVirtualenvOperator,
    "branch_external_python": BranchExternalPythonOperator,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_decorator_says_of_arguments_what_its_operator_does(kind: str) -> None:
    """What editors and type checkers read stands in overloads."""
    taken: dict[str, inspect.Parameter] = {}
    for operator in reversed(KINDS[kind].__mro__[:-1]):
        if "__init__" in vars(operator):
            taken |= inspect.signature(operator.__init__).parameters
    bare, with_arguments = get_overloads(getattr(TaskDecorator, kind))
    said = inspect.signature(with_arguments).parameters
    assert "options" not in inspect.signature(bare).parameters
    for name, parameter in said.items():
        if parameter.kind is parameter.KEYWORD_ONLY:
            assert (parameter.annotation, parameter.default) == (taken[name].annotation, taken[name].default), name
    options = getattr(decorators, said["options"].annotation.removeprefix("Unpack[").removesuffix("]"))
    for name, annotation in options.__annotations__.items():
        if name not in decorators._Options.__annotations__:
            written = annotation.__forward_arg__.removeprefix("Required[")
            assert written.removesuffix("]" if written != annotation.__forward_arg__ else "") == taken[name].annotation, name
