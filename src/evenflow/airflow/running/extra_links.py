"""Links of operators for people, which the SDK pushes as XComs when a try has ended; here also those that plugins have for them."""

from __future__ import annotations

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
        links = _of_plugins(type(ti.task))
        self.names.update({link.xcom_key: link.name for link in (*ti.task.operator_extra_links, *links)})
        for link in links:
            try:
                task_runner._xcom_push_to_db(ti, key=link.xcom_key, value=link.get_link(operator=ti.task, ti_key=ti))
            except Exception:
                log.exception("A link of a plugin cannot be made", link_name=link.name)
        _finalize(ti, state, context, log, error)


def _of_plugins(kind: type) -> list[Any]:
    """Returns links for all operators, and those for this one: a link for another class is not one for what it is derived from."""
    plugins, _ = _get_plugins()  # of the SDK, which has loaded them for their macros
    of_all = [link for plugin in plugins for link in plugin.global_operator_extra_links]
    return of_all + [link for plugin in plugins for link in plugin.operator_extra_links if kind in link.operators]
