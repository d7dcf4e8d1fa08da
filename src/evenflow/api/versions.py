"""Keeps in memory what never changes once it is written: DAG versions and the names of runs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from evenflow.api.limits import CACHED_RUNS, CACHED_TASKS
from evenflow.core.mapping import mapped_tasks
from evenflow.core.model import DagSpec, TaskSpec
from evenflow.errors import DagNotFound
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving.dags import read_versions
from evenflow.store.serving.dispatch import RunNames, read_run


@dataclass(frozen=True, slots=True)
class ServedVersion:
    number: int
    code_hash: str
    file: str
    bundle: str  # in which it was found
    default_timezone: str
    environment: str
    tasks: tuple[TaskSpec, ...]
    mapped: tuple[bool, ...]  # of each task whether it has instances
    index_of: dict[str, int] = field(repr=False)  # task index by task_id


class Versions:
    """A cache of versions and runs, bounded in size. One statement fetches all versions that a call lacks."""

    def __init__(self) -> None:
        self._versions: OrderedDict[int, ServedVersion] = OrderedDict()
        self._tasks = 0
        self._runs: OrderedDict[int, RunNames] = OrderedDict()

    async def of(self, conn: AsyncConn, keys: Iterable[int]) -> dict[int, ServedVersion]:
        """The versions with these keys."""
        wanted = set(keys)
        missing = wanted - self._versions.keys()
        if missing:
            for row in await read_versions(conn, missing):
                spec = DagSpec.from_json(row.spec)
                tasks = spec.tasks
                index_of = {task.task_id: index for index, task in enumerate(tasks)}
                if row.version_key not in self._versions:
                    self._tasks += len(tasks)
                self._versions[row.version_key] = ServedVersion(
                    row.version_number,
                    row.code_hash,
                    row.file,
                    row.bundle,
                    spec.default_timezone,
                    spec.environment,
                    tasks,
                    mapped_tasks(spec),
                    index_of,
                )
        found = {key: self._versions[key] for key in wanted}
        while self._tasks > CACHED_TASKS and self._versions:
            self._tasks -= len(self._versions.popitem(last=False)[1].tasks)
        return found

    async def of_subject(self, conn: AsyncConn, run_key: int) -> tuple[int, RunNames, ServedVersion]:
        """Returns the run that a try is about, with its key: for a callback the run that called. Raises :class:`DagNotFound`."""
        names, version = await self.of_run(conn, run_key)
        return (run_key, names, version) if names.subject == run_key else (names.subject, *await self.of_run(conn, names.subject))

    async def of_run(self, conn: AsyncConn, run_key: int) -> tuple[RunNames, ServedVersion]:
        """The names of a run, and its version. Raises :class:`DagNotFound`."""
        run = self._runs.get(run_key)
        if run is None:
            run = await read_run(conn, run_key)
            if run is None:
                raise DagNotFound("The run of this try does not exist any more.")
            self._runs[run_key] = run
            if len(self._runs) > CACHED_RUNS:
                self._runs.popitem(last=False)
        return run, (await self.of(conn, [run.version_key]))[run.version_key]
