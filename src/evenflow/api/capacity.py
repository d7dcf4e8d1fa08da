"""What there is to run tasks with: pools, executors and queues, as REST answers and open pages have them."""

from __future__ import annotations

from evenflow.contracts.rest.executors import Executor
from evenflow.contracts.rest.pools import Pool
from evenflow.contracts.rest.system import PushExecutorStatus, QueueStatus
from evenflow.core.limits import LEASE_S
from evenflow.core.selection.pool_policy import PoolPolicy
from evenflow.explaining.serving import executor_trouble, queue_trouble
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving import executors, pools, views


async def read_pools(conn: AsyncConn, name: str | None = None, *, scope: str | None = None) -> list[Pool]:
    """Returns all pools, or the one of this name."""
    return [
        Pool(
            name=row["name"],
            description=row["description"],
            slots=row["slots"],
            used=row["used"],
            policy=str(PoolPolicy(row["patience_s"])),
            while_deferred=row["while_deferred"],
        )
        for row in await pools.list_pools(conn, name, scope=scope)
    ]


async def read_executors(conn: AsyncConn, name: str | None = None, *, scope: str | None = None) -> list[Executor]:
    """Returns all executors, or the one of this name."""
    return await with_troubles(conn, await read_push_executors(conn, scope=scope), name, scope)


async def with_troubles(
    conn: AsyncConn, pushed: list[PushExecutorStatus], name: str | None = None, scope: str | None = None
) -> list[Executor]:
    """As :func:`read_executors`, with ``pushed``: what launchers serve, which the caller has read already."""
    troubles = {one.name: one.trouble for one in pushed}
    rows = await executors.list_executors(conn, name, scope=scope)
    return [Executor.model_validate({**row, "trouble": troubles.get(row["name"])}) for row in rows]


async def read_queues(conn: AsyncConn, *, scope: str | None = None) -> list[QueueStatus]:
    rows = await views.list_queues(conn, lease_s=LEASE_S, scope=scope)
    return [QueueStatus.model_validate({**row, "trouble": queue_trouble(row)}) for row in rows]


async def read_push_executors(conn: AsyncConn, *, scope: str | None = None) -> list[PushExecutorStatus]:
    rows = await views.list_push_executors(conn, lease_s=LEASE_S, scope=scope)
    return [PushExecutorStatus.model_validate({**row, "trouble": executor_trouble(row)}) for row in rows]
