"""Refuses what has no counterpart in Evenflow: by its name, with what to do, and all of a file at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from evenflow.errors import DagError


class Unknown(NamedTuple):
    """A setting that Evenflow lacks. ``harmless`` are the values under which nothing changes without it."""

    cure: str
    harmless: tuple[Any, ...] = (None,)


OF_TASKS: Mapping[str, Unknown] = {
    "run_as_user": Unknown("Start a worker as this user, and name its queue by queue=."),
    "resources": Unknown("Leave it out: Airflow does nothing with it either."),
    "start_from_trigger": Unknown("Say start_from_trigger=False: the task then defers as soon as it runs.", (None, False)),
    "depends_on_previous_tasks": Unknown("Say depends_on_past=."),
}

OF_DAGS: Mapping[str, Unknown] = {
    "access_control": Unknown(
        "Roles say what a person may do, and scopes in which DAGs: evenflow users set-scope NAME --tag TAG", (None, {})
    ),
}

_PARTITIONED = "Say when it runs by a cron expression or by assets: there are no runs of parts of assets."
IMPORTS: Mapping[str, str] = {  # names that files import only to use them
    "CronPartitionTimetable": _PARTITIONED,
    "PartitionedAssetTimetable": _PARTITIONED,
    "PartitionedAtRuntime": _PARTITIONED,
}


class DagRefusals:
    """The refusals of one DAG."""

    def __init__(self, dag_id: str) -> None:
        self._dag_id = dag_id
        self._told: list[str] = []

    def add(self, what: str, cure: str, of: str = "") -> None:
        """Adds a refusal: ``what`` has no counterpart; ``of`` names the part of the DAG that has it."""
        where = f"DAG {self._dag_id!r}{f', {of}' if of else ''}"
        self._told.append(f"{where}: Evenflow has no {what}. {cure}")

    def look(self, known: Mapping[str, Unknown], holder: Any, of: str = "") -> None:
        """Checks the settings of a task or DAG that may be refused."""
        for name, unknown in known.items():
            value = getattr(holder, name, None)
            if not any(type(value) is type(each) and value == each for each in unknown.harmless):
                self.add(name, unknown.cure, of)

    def tell(self) -> None:
        """Raises :class:`DagError` if anything was refused."""
        if self._told:
            raise DagError("\n".join(dict.fromkeys(self._told)))
