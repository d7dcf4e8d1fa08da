"""What tests put into the database in the scheduler's stead."""

from __future__ import annotations

from typing import Any

import psycopg

from evenflow.api.tokens import TryToken
from evenflow.client.execution import ExecutionClient
from evenflow.core.model import DagSpec, MapInput, Mapping, TaskSpec
from evenflow.core.service import UserCodeKind
from evenflow.wire import messages as m
from tests.tokens import fleet_token, service_token, try_token
from tests.world import CODE, Unscheduled

SPEC = DagSpec(
    dag_id="sales",
    tasks=(
        TaskSpec(task_id="extract", operator="python", retries=2, execution_timeout=60.0),
        TaskSpec(task_id="clean", operator="python", upstream=(0,), mapping=Mapping(inputs=(MapInput(name="part", task=0),))),
        TaskSpec(task_id="load", operator="python", upstream=(0, 1), queue="big"),
    ),
)


class World(Unscheduled):
    """What a scheduler would have done."""

    def add_dag(self, spec: DagSpec = SPEC, files: dict[str, bytes] = CODE, *, file: str | None = None) -> int:
        return super().add_dag(spec, files, file=file)

    def resume(self, run_key: int, epoch: int, task: int = 0, map_index: int = -1, **how: Any) -> int:
        """A try that was deferred under epoch 0 and waits for a worker again."""
        with self.conn.transaction():
            self.instance(run_key, task, map_index, epoch=epoch)
            self.wait(run_key, 0, task, map_index)
            self.wake(run_key, 0, task, map_index)
            return self.dispatch(run_key, epoch, task, map_index, resumes=True, **how)

    def try_token(self, epoch: int, **other: int) -> str:
        query = "select run_key, task_index, map_index, try_number from dispatch where epoch = %s"
        row = self.conn.execute(query, [epoch]).fetchone()
        claims = dict(zip(("run_key", "task_index", "map_index", "try_number"), row or (1, 0, -1, 1), strict=True))
        return try_token(self.conn, TryToken(epoch=epoch, **{**claims, **other}))


class ClientOfAll(ExecutionClient):
    """Speaks for each service of its kind with that one's token, and for no service in particular with that of number 1."""

    def __init__(self, api_url: str, db: psycopg.Connection[Any], kind: UserCodeKind) -> None:
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
