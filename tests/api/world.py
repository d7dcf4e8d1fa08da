"""What tests put into the database in the scheduler's stead."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import psycopg

from evenflow.api.tokens import ServiceKind, TryToken
from evenflow.client.execution import ExecutionClient
from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec
from evenflow.wire import messages as m
from evenflow.wire.code import archive_hash, pack
from tests.tokens import fleet_token, service_token, try_token

CODE = {"pipeline.py": b"from evenflow import dag\n"}
CODE_HASH = archive_hash(CODE)

SPEC = DagSpec(
    dag_id="sales",
    tasks=(
        TaskSpec(task_id="extract", operator="python", retries=2, execution_timeout=60.0),
        TaskSpec(task_id="clean", operator="python", upstream=(0,), mapping=Mapping(inputs=(MapInput(name="part", task=0),))),
        TaskSpec(task_id="load", operator="python", upstream=(0, 1), queue="big"),
    ),
)


@dataclass
class World:
    """What a scheduler would have done, written straight into the tables."""

    db: psycopg.Connection[Any]

    def version(self, spec: DagSpec = SPEC, *, file: str = "pipeline.py") -> int:
        self.db.execute("insert into code (code_hash, archive) values (%s, %s) on conflict do nothing", [CODE_HASH, pack(CODE)])
        row = self.db.execute(
            "insert into dag_version (dag_id, version_number, spec, spec_hash, code_hash, file)"
            " select %(dag)s, count(*) + 1, %(spec)s, %(hash)s, %(code)s, %(file)s from dag_version where dag_id = %(dag)s"
            " returning version_key",
            {"dag": spec.dag_id, "spec": spec.to_json(), "hash": spec.hash(), "code": CODE_HASH, "file": file},
        ).fetchone()
        assert row is not None
        for index, task in enumerate(spec.tasks):
            self.db.execute("insert into task values (%s, %s, %s, %s)", [row[0], index, task.task_id, task.operator])
        self.db.execute(
            "insert into dag (dag_id, version_key, bundle, file) values (%s, %s, 'main', %s)"
            " on conflict (dag_id) do update set version_key = excluded.version_key",
            [spec.dag_id, row[0], file],
        )
        return int(row[0])

    def run(self, version_key: int, run_id: str = "r1", *, params: dict[str, Any] | None = None, state: str = "running") -> int:
        row = self.db.execute(
            "insert into dag_run (dag_id, run_id, version_key, state, run_type, params, logical_date)"
            " select dag_id, %s, version_key, %s, 'manual', %s,"
            " '2026-03-01 00:00+00'::timestamptz + (select count(*) from dag_run) * interval '1 day'"
            " from dag_version where version_key = %s"
            " returning run_key",
            [run_id, state, json.dumps(params or {}), version_key],
        ).fetchone()
        assert row is not None
        return int(row[0])

    def instance(
        self, run_key: int, task: int, map_index: int = -1, *, state: str = "queued", epoch: int = 0, tries: int = 1
    ) -> None:
        self.db.execute(
            "insert into task_instance (run_key, task_index, map_index, state, epoch, try_number) values (%s, %s, %s, %s, %s, %s)"
            " on conflict (run_key, task_index, map_index) do update"
            " set state = excluded.state, epoch = excluded.epoch, try_number = excluded.try_number",
            [run_key, task, map_index, state, epoch, tries],
        )

    def dispatch(
        self,
        run_key: int,
        epoch: int,
        task: int = 0,
        map_index: int = -1,
        *,
        queue: str = "default",
        priority: int = 1,
        resume: bool = False,
        tries: int = 1,
        notify: bool = True,
    ) -> int:
        with self.db.transaction():
            self.instance(run_key, task, map_index, epoch=epoch, tries=tries)
            self.db.execute(
                "insert into dispatch"
                " (epoch, run_key, task_index, map_index, try_number, class, priority, queue, holds, pool_slots)"
                " values (%s, %s, %s, %s, %s, %s, %s, %s, '{}', 1)",
                [epoch, run_key, task, map_index, tries, 0 if resume else 1, priority, queue],
            )
            if resume:
                self.db.execute(
                    "insert into deferral (run_key, task_index, map_index, epoch, queue, trigger, sealed, holds, pool_slots,"
                    " retake, retake_slots, began_at, ran_s, ready_at, purpose)"
                    " values (%s, %s, %s, 0, 'default', 'x.Waits', '', '{}', 0, '{}', 0, now(), 0, now(), 'event')",
                    [run_key, task, map_index],
                )
            if notify:
                self.db.execute("notify dispatch")
        return epoch

    def end(self, epoch: int) -> None:
        """The try's exit was applied."""
        self.db.execute("delete from dispatch where epoch = %s", [epoch])

    def one(self, query: str, *args: Any) -> Any:
        row = self.db.execute(query, args).fetchone()
        return None if row is None else row[0] if len(row) == 1 else row

    def all(self, query: str, *args: Any) -> list[Any]:
        return [row[0] if len(row) == 1 else row for row in self.db.execute(query, args).fetchall()]

    def try_token(self, epoch: int, **other: int) -> str:
        query = "select run_key, task_index, map_index, try_number from dispatch where epoch = %s"
        row = self.db.execute(query, [epoch]).fetchone()
        claims = dict(zip(("run_key", "task_index", "map_index", "try_number"), row or (1, 0, -1, 1), strict=True))
        return try_token(self.db, TryToken(epoch=epoch, **{**claims, **other}))


class ClientOfAll(ExecutionClient):
    """Speaks for each service of its kind with that one's token, and for no service in particular with that of number 1."""

    def __init__(self, api_url: str, db: psycopg.Connection[Any], kind: ServiceKind) -> None:
        super().__init__(api_url, fleet_token(db, kind))
        self._db, self._kind = db, kind
        self._speak_for(1)

    def _speak_for(self, service_id: int) -> None:
        self._credential.take(service_token(self._db, self._kind, service_id))

    async def beat(self, service_id: int, message: m.Beat, *, patience_s: float | None = None) -> m.BeatAnswer:
        self._speak_for(service_id)
        return await super().beat(service_id, message, patience_s=patience_s)

    async def claim(self, message: m.Claim) -> m.ClaimAnswer:
        self._speak_for(message.service_id)
        return await super().claim(message)

    async def lease_files(self, message: m.FilesLease) -> m.FilesLeased:
        self._speak_for(message.service_id)
        return await super().lease_files(message)


async def new_worker(client: ExecutionClient) -> int:
    message = m.Register(kind="worker", name="w", host="h", pid=1, version="0", detail={"slots": 4, "queues": ["default"]})
    return (await client.register(message)).service_id
