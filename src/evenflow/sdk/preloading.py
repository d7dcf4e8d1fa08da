"""Imports that are paid once, by the process that tries are forked from, and not by each of them."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from contextlib import suppress

from evenflow.sdk.dag import DAG


def preload(dags: Iterable[DAG]) -> None:
    """Loads what tasks of these say that their tries import. What cannot be imported is told by the try that needs it."""
    for name in dict.fromkeys(name for dag in dags for task in dag.tasks.values() for name in task.preloads()):
        with suppress(ImportError):
            importlib.import_module(name)
