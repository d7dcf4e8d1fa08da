"""The cost of ending each worker of a fleet (R-AS5), and the order in which they would go."""

from __future__ import annotations

from collections.abc import Collection

from evenflow.contracts.rest.fleets import FleetWorker
from evenflow.core.scaling.choosing import Candidate, choose, is_protected, labels_of, ranks, weight_of
from evenflow.core.scaling.policy import ScalingPolicy
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving import scaling
from evenflow.store.serving.scaling import FleetRow


async def worker_costs(conn: AsyncConn, workers: Collection[int], policy: ScalingPolicy) -> dict[int, float | None]:
    """Returns costs by worker; None for a worker with a protected task. Idle workers are not in it. Without labels in the policy,
    the running tasks are not read.
    """
    if not workers:
        return {}
    if not policy.protect and not policy.weights:
        return {cost.worker_id: cost.squares for cost in await scaling.read_costs(conn, workers, by_task=False)}
    tasks = await scaling.read_costs(conn, workers, by_task=True)
    weights = await _weights(conn, {(task.version_key, task.task_index) for task in tasks}, policy)
    costs: dict[int, float | None] = {}
    for worker, version_key, task_index, squares in tasks:
        so_far, weight = costs.setdefault(worker, 0.0), weights[version_key, task_index]
        costs[worker] = None if so_far is None or weight is None else so_far + squares * weight
    return costs


async def _weights(
    conn: AsyncConn, tasks: Collection[tuple[int, int]], policy: ScalingPolicy
) -> dict[tuple[int, int], float | None]:
    """Returns weights by task; None for a protected task."""
    weights: dict[tuple[int, int], float | None] = {}
    for task in await scaling.name_tasks(conn, tasks):
        labels = labels_of(task.dag_id, task.task_id, task.tags)
        weights[task.version_key, task.task_index] = None if is_protected(labels, policy) else weight_of(labels, policy)
    return weights


async def fleet_workers(conn: AsyncConn, fleet: FleetRow) -> list[FleetWorker]:
    """Returns the workers of its queues, in the order in which they would go; protected ones last."""
    serving = [worker for worker in await scaling.read_workers(conn) if not set(worker.queues).isdisjoint(fleet.queues)]
    costs = await worker_costs(conn, [worker.service_id for worker in serving], fleet.rule)
    known = [Candidate(w.name, w.is_ready, w.began_at, w.running, costs.get(w.service_id, 0.0), w.out_of_service) for w in serving]
    ranked, order = ranks(known), choose(known, len(known))
    by_name = {worker.name: worker for worker in serving}
    workers = []
    for name in (*order.chosen, *order.protected):
        worker, is_protected = by_name[name], name in order.protected
        mark = "leaving" if worker.fence else "out of service" if worker.out_of_service else "protected" if is_protected else ""
        rank = None if is_protected else ranked[name]
        cost = None if is_protected else round(costs.get(worker.service_id) or 0.0)
        row = FleetWorker(name=name, is_ready=worker.is_ready, running=worker.running, rank=rank, cost=cost, mark=mark)
        workers.append(row)
    return workers
