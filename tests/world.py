"""What stands in the database when a test begins: versions of DAGs, runs, tries, what waits for triggers, services. All of it is
stored by the product's own functions. The worlds of the areas extend this one with what the others there say and ask.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, TypeVar, cast

import psycopg
from psycopg.sql import SQL, Identifier

from evenflow.core.graph import creation_line
from evenflow.core.model import DagSpec, hash_of
from evenflow.core.states import TaskState
from evenflow.store.db.notify import DISPATCH
from evenflow.store.scheduling import deferrals, tasks
from evenflow.store.serving import dags, pools, services
from evenflow.store.serving.dag_limits import change_limits, insert_limits
from evenflow.wire.code import archive_hash, pack

T = TypeVar("T")

CODE = {"pipeline.py": b"from evenflow import dag\n"}
CODE_HASH = archive_hash(CODE)


class AtOnce:
    """A connection, or a cursor of one, for functions that await what they ask of it: each answer is here at once."""

    def __init__(self, asked: Any) -> None:
        self._asked = asked

    def cursor(self, **how: Any) -> AtOnce:
        return AtOnce(self._asked.cursor(**how))

    async def execute(self, *what: Any, **how: Any) -> AtOnce:
        return AtOnce(self._asked.execute(*what, **how))

    async def fetchone(self) -> Any:
        return self._asked.fetchone()

    async def fetchall(self) -> Any:
        return self._asked.fetchall()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        with self._asked.transaction():
            yield


def at_once(asking: Coroutine[Any, Any, T]) -> T:
    """What a function answers that waits for nothing but :class:`AtOnce`."""
    try:
        asking.send(None)
    except StopIteration as ended:
        return cast(T, ended.value)
    raise AssertionError(f"{asking} waits for something else")


@dataclass
class World:
    conn: psycopg.Connection[Any]  # autocommit
    epochs: count[int] = field(default_factory=lambda: count(1), kw_only=True)

    @property
    def awaited(self) -> Any:
        """For the functions of the API."""
        return AtOnce(self.conn)

    def one(self, query: str, *args: Any) -> Any:
        """The row, or what it has if that is one value; None when there is none."""
        row = self.conn.execute(query, args).fetchone()
        return None if row is None else row[0] if len(row) == 1 else row

    def all(self, query: str, *args: Any) -> list[Any]:
        """As :meth:`one`, of all rows."""
        return [row[0] if len(row) == 1 else row for row in self.conn.execute(query, args).fetchall()]

    def notify(self, *channels: str) -> None:
        for channel in channels:
            self.conn.execute("select pg_notify(%s, '')", [channel])

    # -- DAGs, and what they share ---------------------------------------------------------------------------------------

    def add_dag(self, spec: DagSpec, files: dict[str, bytes] = CODE, *, file: str | None = None) -> int:
        """The key of the DAG's newest version, which is this one from now on; it is in the first of its files if not in another."""
        file = file or next(iter(files))
        code_hash, text = archive_hash(files), spec.to_json()
        with self.conn.transaction():
            at_once(dags.lock_ids(self.awaited, [spec.dag_id]))
            at_once(dags.insert_code(self.awaited, code_hash, pack(files)))
            named = {"dag_id": spec.dag_id, "spec": text, "spec_hash": hash_of(text), "code_hash": code_hash, "file": file}
            key = at_once(dags.insert_version(self.awaited, **named, tasks=spec.tasks))
            limits_change = at_once(insert_limits(self.awaited, [spec]))
            place: dict[str, Any] = {"bundle": "main", "file": file, "line": creation_line(spec), "tags": spec.tags}
            never = dags.NextRun()
            at_once(dags.upsert(self.awaited, dag_id=spec.dag_id, version_key=key, **place, is_paused=False, next_run=never))
            if limits_change:
                at_once(change_limits(self.awaited, [spec]))
        return key

    def pool(self, name: str, slots: int) -> None:
        at_once(pools.set_pool(self.awaited, name, slots=slots, description=None, policy=None))

    def service(self, kind: str = "worker", name: str = "w", *, state: str = "active") -> int:
        """The id of one that registers; nothing runs there."""
        process: dict[str, Any] = {"host": "h", "pid": 1, "version": "0", "detail": {}}
        service_id = at_once(services.register(self.awaited, kind=kind, name=name, **process))
        if state != "active":
            self.conn.execute("update service set state = %s where service_id = %s", [state, service_id])
        return service_id

    # -- runs and their tries ----------------------------------------------------------------------------------------------

    def run(
        self,
        version_key: int,
        run_id: str | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        logical_date: datetime | None = None,
        priority: int = 0,
        **columns: Any,
    ) -> int:
        """The key of a run that somebody has asked for, and that has become what ``columns`` say since."""
        dag_id = self.one("select dag_id from dag_version where version_key = %s", version_key)
        asked: dict[str, Any] = {"params": json.dumps(params or {}), "logical_date": logical_date, "priority": priority}
        named = {"dag_id": dag_id, "run_id": run_id or str(uuid.uuid4()), "version_key": version_key}
        run_key = at_once(dags.insert_run(self.awaited, **named, **asked))
        assert run_key is not None, f"The DAG has a run {run_id} already, or one of {logical_date}"
        if columns:
            changes = SQL(", ").join(SQL("{} = {}").format(Identifier(name), value) for name, value in columns.items())
            self.conn.execute(SQL("update dag_run set {} where run_key = {}").format(changes, run_key))
        return int(columns.get("run_key", run_key))

    def instance(
        self, run_key: int, task: int, map_index: int = -1, *, state: str = "queued", epoch: int = 0, tries: int = 1
    ) -> None:
        """It is there, and has become that."""
        moved = self.conn.execute(
            "update task_instance set state = %s, epoch = %s, try_number = %s"
            " where (run_key, task_index, map_index) = (%s, %s, %s)",
            [state, epoch, tries, run_key, task, map_index],
        )
        if not moved.rowcount:
            tasks.insert_instances(self.conn, [tasks.Item(run_key, task, map_index, TaskState(state), epoch, tries)])

    def dispatch(
        self,
        run_key: int,
        epoch: int | None = None,
        task: int = 0,
        map_index: int = -1,
        *,
        queue: str = "default",
        priority: int = 1,
        tries: int = 1,
        resumes: bool = False,
        notify: bool = True,
    ) -> int:
        """A try that waits for a worker; the answer is its epoch. One that ``resumes`` has been deferred before."""
        epoch = epoch or next(self.epochs)
        of_try = (0 if resumes else 1, priority, queue, [], 1, 0, "resume" if resumes else "start", None, None, 0, 0)
        with self.conn.transaction():
            self.instance(run_key, task, map_index, epoch=epoch, tries=tries)
            tasks.insert_dispatches(self.conn, [tasks.Dispatch(epoch, run_key, task, map_index, tries, *of_try)])
            if notify:
                self.notify(DISPATCH)
        return epoch

    def end(self, epoch: int) -> None:
        """The try's exit was applied, or the try was taken back."""
        self.conn.execute("delete from dispatch where epoch = %s", [epoch])

    # -- what waits for triggers -------------------------------------------------------------------------------------------

    def wait(
        self,
        run_key: int,
        epoch: int,
        task: int = 0,
        map_index: int = -1,
        *,
        trigger: str = "x.Waits",
        queue: str = "default",
        sealed: str = "",
        **_: object,
    ) -> None:
        """A task instance is deferred since now, by its try of this epoch. ``sealed``: the trigger's arguments."""
        holds: dict[str, Any] = {"holds": (), "pool_slots": 0, "retake": (), "retake_slots": 0}
        times: dict[str, Any] = {"ran_s": 0.5, "timeout_s": None, "execution_timeout_s": None}
        said = deferrals.Deferral(run_key, task, map_index, epoch, queue, trigger, sealed, **holds, **times)
        deferrals.insert_all(self.conn, [said])

    def wake(
        self,
        run_key: int,
        epoch: int,
        task: int = 0,
        map_index: int = -1,
        *,
        purpose: str = "event",
        event: str | None = None,
        reason: str | None = None,
    ) -> None:
        """It waits no longer: this is why. ``event`` is sealed."""
        deferrals.resume_all(self.conn, [deferrals.Resume(run_key, task, map_index, epoch, purpose, event, reason, None)])


class Unscheduled(World):
    """Where no scheduler is: runs run as soon as they are there."""

    def run(self, version_key: int, run_id: str | None = None, **columns: Any) -> int:
        """r1, r2 and so on, each with a logical date of its own."""
        number = self.one("select count(*) from dag_run")
        day = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=number)
        return super().run(version_key, run_id or f"r{number + 1}", **{"state": "running", "logical_date": day, **columns})
