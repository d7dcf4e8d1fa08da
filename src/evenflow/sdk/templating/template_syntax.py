"""Finds templates that can never be rendered when the DAG is loaded. They are parsed, not rendered, because no run is known yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evenflow.sdk.dag import DAG
from evenflow.sdk.task import Task
from evenflow.sdk.templating.templates import is_template, syntax_fault, texts

if TYPE_CHECKING:
    from jinja2 import Environment


def template_faults(dag: DAG) -> list[str]:
    """Returns a sentence for each field of a task that is not valid Jinja, and for each named file that is not."""
    found: list[str] = []
    environment: Environment | None = None
    for task in dag.tasks:
        for field, text, is_file in _templates(task):
            if environment is None:
                from evenflow.sdk.templating.jinja import make_environment

                environment = make_environment(dag, dag.template_folders())
            if fault := _fault(environment, text, is_file):
                place = f"{field} (the file {text.strip()})" if is_file else field
                found.append(f"DAG {dag.dag_id!r}, task {task.task_id!r}: the field {place} is not a valid template: {fault}")
    return found


def _templates(task: Task) -> Iterator[tuple[str, str, bool]]:
    """Yields field, text, and whether that is the name of a file."""
    _, endings = task.templates()
    for field, value in task.templates_by_field():
        for text in texts(value):
            if endings and text.endswith(endings):
                yield field, text, True
            elif is_template(text):
                yield field, text, False


def _fault(environment: Environment, text: str, is_file: bool) -> str | None:
    from jinja2 import TemplateNotFound, TemplateSyntaxError

    assert environment.loader is not None
    try:
        source = environment.loader.get_source(environment, text.strip())[0] if is_file else text
        environment.parse(source)
    except TemplateNotFound:  # the try that needs it reports where it was searched
        return None
    except TemplateSyntaxError as error:
        return syntax_fault(error)
    return None
