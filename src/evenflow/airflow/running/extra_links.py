"""Links of operators for people, which the SDK pushes as XComs when a try has ended; here also those that plugins have for them.
A link that fails is told of in the log, and keeps no other link, no callback and no listener from its turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from airflow.sdk.execution_time import task_runner
from airflow.sdk.plugins_manager import _get_plugins

_finalize = task_runner.finalize


@dataclass(frozen=True, slots=True)
class Linking:
    """Replaces the SDK's ``finalize``: ``names`` gets the name of each link by the key of its XCom before it is pushed."""

    names: dict[str, str]

    def __call__(self, ti: Any, state: Any, context: Any, log: Any, error: Any = None) -> None:
        for link in ti.task.operator_extra_links:
            with _told(link, log):
                self.names[link.xcom_key] = link.name
        for link, is_for_all in _of_plugins():
            with _told(link, log):
                if is_for_all or type(ti.task) in link.operators:  # classes that are derived from one of these have their own
                    self.names[link.xcom_key] = link.name
                    task_runner._xcom_push_to_db(ti, key=link.xcom_key, value=link.get_link(operator=ti.task, ti_key=ti))
        _finalize(ti, state, context, log, error)


@contextmanager
def _told(link: Any, log: Any) -> Iterator[None]:
    try:
        yield
    except Exception:
        log.exception("A link cannot be made", link=type(link).__qualname__)


def _of_plugins() -> Iterator[tuple[Any, bool]]:
    """Yields their links, and whether one is for all operators."""
    plugins, _ = _get_plugins()  # of the SDK, which has loaded them for their macros
    for plugin in plugins:
        yield from ((link, True) for link in plugin.global_operator_extra_links)
    for plugin in plugins:
        yield from ((link, False) for link in plugin.operator_extra_links)
