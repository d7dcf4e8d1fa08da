"""Imports that happen once, in the process from which tries are forked, and not in each try."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from contextlib import suppress

from evenflow.sdk.dag import DAG
from evenflow.sdk.task import Task
from evenflow.sdk.templating.templates import is_template, texts

EVERY_TRY = ("evenflow.sdk.templating.macros",)
WITH_TEMPLATES = ("evenflow.sdk.templating.jinja", "jinja2._identifier")


def preload_ahead() -> None:
    """Loads common modules before the DAGs are known."""
    for name in (*EVERY_TRY, *WITH_TEMPLATES):
        importlib.import_module(name)


def preload(dags: Iterable[DAG]) -> None:
    """Loads what tasks of these DAGs import in their tries. A failed import is reported by the try that needs it."""
    for name in dict.fromkeys(name for dag in dags for task in dag.task_dict.values() for name in _modules(task)):
        with suppress(ImportError):
            importlib.import_module(name)


def _modules(task: Task) -> Iterator[str]:
    yield from EVERY_TRY
    yield from task.preloads()
    values, endings = task.templates()
    if any(is_template(text) or text.endswith(endings) for text in texts(values)):
        yield from WITH_TEMPLATES
