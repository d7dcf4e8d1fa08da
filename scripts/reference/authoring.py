"""What ``evenflow`` exports, and the options of DAGs and tasks."""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
from types import ModuleType
from typing import Any

import evenflow
from evenflow.sdk import dag, options
from scripts.reference.markdown import fields_of, prose, sentence, signature_of, split_arguments, table, trailing_comments

WIDTH = 100  # of a signature on one line

_DAG_OPTIONS = {
    "end_date": "No run is scheduled after it.",
    "catchup": "Whether runs that were due while nothing ran are created late.",
    "tags": "For people.",
    "max_active_runs": "How many runs may be running at once; `None`: any number.",
    "max_active_tasks": "How many tasks of one run may run at once; `None`: any number.",
    "description": "One line, for people.",
    "doc_md": "Prose, for people.",
    "owner": "Whom to ask.",
    "is_paused_upon_creation": "Whether it begins paused; else `dags_are_paused_at_creation` says.",
    "on_failure_callback": "The same of a run that has failed.",
    "user_defined_filters": "Filters that templates may use.",
}
_TASK_OPTIONS = {
    "retries": "How often a failed try is repeated.",
    "retry_delay": "From the end of a failed try to the next one.",
    "retry_exponential_backoff": "The factor from one delay to the next; `True` is 2, `False` a constant delay.",
    "max_retry_delay": "The longest delay that back-off may reach.",
    "infrastructure_retries": "How often, in all, its worker may be lost or be unable to start it without using up a try.",
    "execution_timeout": "A try that runs longer is ended, and has failed.",
    "pool": "The pool whose slots the task takes.",
    "pool_slots": "How many slots of the pool it takes.",
    "priority_weight": "Higher starts first where a limit holds tasks back.",
    "weight_rule": "Whether the weights of downstream or of upstream tasks are added, or none (`absolute`).",
    "queue": "Which workers may run it: those that serve this queue.",
    "executor": "What runs it; so far there is `worker`.",
    "trigger_rule": "Which ends of its upstream tasks let it start.",
    "max_active_tis_per_dag": "How many instances may run at once in all runs of the DAG together.",
    "max_active_tis_per_dagrun": "How many instances may run at once in one run: a limit for mapped tasks.",
    "doc": "Prose, for people.",
    "doc_md": "The same as `doc`.",
    "params": "Values that it reads as `params` instead of the DAG's defaults, or beside them: a dict of values or `Param(...)`.",
    "depends_on_past": "Waits until its own instances in the run before have ended well.",
    "wait_for_downstream": "And those directly downstream of it.",
    "on_failure_callback": "Called when it has failed for good.",
    "on_retry_callback": "Called when a try failed and another one follows.",
}


def page() -> str:
    parts = [
        "# Authoring",
        "Everything that a DAG file imports from `evenflow`. Options: [of DAGs](#dag-options), [of tasks](#task-options).",
    ]
    parts += [_describe(name, getattr(evenflow, name)) for name in evenflow.__all__]
    parts += ["## DAG options", "`DAG(...)` and `@dag(...)` take these by keyword.", _options(dag, "DagOptions", _DAG_OPTIONS, {})]
    defaults = {field.name: field.default for field in dataclasses.fields(options.TaskSettings)}
    parts += [
        "## Task options",
        "`@task(...)`, every operator and `default_args` take these. Durations are a timedelta or seconds.",
    ]
    parts.append(_options(options, "TaskOptions", _TASK_OPTIONS, defaults))
    return "\n\n".join(parts)


def _options(module: ModuleType, name: str, meanings: dict[str, str], defaults: dict[str, Any]) -> str:
    comments = trailing_comments(module, name)
    rows = []
    for field in fields_of(module, name):
        option = ast.unparse(field.target)
        default = defaults.get(option)
        meaning = meanings.get(option) or sentence(comments[option])
        if not meaning:
            raise ValueError(f"{name}.{option} needs a comment, or a line in {__name__}, that says what it means.")
        rows.append((f"`{option}`", f"`{ast.unparse(field.annotation)}`", *([_default(default)] if defaults else []), meaning))
    return table(("option", "type", *(["default"] if defaults else []), "meaning"), rows)


def _default(value: Any) -> str:
    return "none" if value in (None, "") else f"`{value}`"


def _describe(name: str, value: Any) -> str:
    parts = [f"### `{name}`"]
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return "\n\n".join([*parts, "One of " + ", ".join(f"`{m.name if issubclass(value, int) else m}`" for m in value) + "."])
    if isinstance(value, ModuleType):
        functions = [
            f"`{each}{signature_of(member)}`" for each, member in vars(value).items() if inspect.getmodule(member) is value
        ]
        return "\n\n".join([*parts, prose(inspect.getdoc(value) or ""), "It has " + ", ".join(functions) + "."])
    if not (isinstance(value, type) and issubclass(value, (dict, Exception))):
        parts.append(
            f"```text\n{_broken(name, signature_of(vars(value).get('__init__', value) if isinstance(value, type) else value))}\n```"
        )
    parts.append(prose(inspect.getdoc(value) or ""))
    if isinstance(value, type):
        methods = [
            (method, member) for method, member in vars(value).items() if not method.startswith("_") and inspect.isfunction(member)
        ]
        parts += [
            f"`.{method}{signature_of(member)}`\n: {prose(inspect.getdoc(member) or '')}"
            for method, member in methods
            if member.__doc__
        ]
    return "\n\n".join(part for part in parts if part)


def _one_line(described: Any) -> str:
    return " ".join(prose(inspect.getdoc(described) or "").split())


def _broken(name: str, signature: str) -> str:
    """The signature, one parameter a line when it is long."""
    if len(name + signature) <= WIDTH:
        return name + signature
    arguments, _, answer = signature[1:].rpartition(")")
    return f"{name}(\n" + "".join(f"    {argument},\n" for argument in split_arguments(arguments)) + f"){answer}"
