"""For test suites of DAGs: a run in memory, with a clock that needs no waiting and stand-ins for the outside.

pytest loads the plugin ``evenflow.testing.plugin`` by itself wherever Evenflow is installed. It must stay cheap to import, and so
must this package: the rest is loaded when a test uses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenflow.sdk.local.engine import Moment
    from evenflow.testing.dag_runner import DagRunner
    from evenflow.testing.outcome import Outcome

__all__ = ["DagRunner", "Moment", "Outcome"]


def __getattr__(name: str) -> Any:
    match name:
        case "DagRunner":
            from evenflow.testing.dag_runner import DagRunner

            return DagRunner
        case "Moment":
            from evenflow.sdk.local.engine import Moment

            return Moment
        case "Outcome":
            from evenflow.testing.outcome import Outcome

            return Outcome
        case _:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
