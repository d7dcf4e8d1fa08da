"""States of service: what a DAG, a pool, a queue, a worker or the whole system still takes on, and what goes on in any case.

Theory of operation
-------------------
A task instance *starts for the first time* when selection grants it. What has started goes on in every state but ``frozen``: tries
run to their end, deferred ones return, and what cleans up or tells people runs, which is teardowns whose setup ran, ``on_kill`` and
callbacks. So closing something never strands work in flight (R-DQ7).

* ``draining``: nothing new is taken on, and what is there is waited for; then it becomes ``paused`` by itself. What is new to a DAG
  or the system is a run: those that have begun run to their end. What is new to a pool, a queue or a worker is a first start.
* ``resume_only`` and ``paused``: nothing starts for the first time. They allow the same and tell people different things.
* ``frozen``: as ``paused``, and what waits for a worker goes on waiting, also resumes and clean-up. What a worker has runs on.

Neither lanes nor dispatches change when something is closed or opened: rounds skip the limit classes of a closed pool or queue as
if they were full, so it costs the same with a backlog of none and of a million. Only a paused DAG parks its lanes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from evenflow.core.callbacks import CALLBACK_DAG
from evenflow.core.graph import Graph

SYSTEM = "all"  # the name of the one object of kind ``system``

# Why something is paused that drained.
DRAINED = "it has drained"
GAVE_UP = "its drain gave up waiting at the deadline"


class ServiceKind(StrEnum):
    """What has a state of service."""

    DAG = "dag"
    POOL = "pool"
    QUEUE = "queue"
    WORKER = "worker"
    SYSTEM = "system"


class ServiceState(StrEnum):
    ACTIVE = "active"
    DRAINING = "draining"
    RESUME_ONLY = "resume_only"
    PAUSED = "paused"
    FROZEN = "frozen"

    def begins_runs(self) -> bool:
        """Whether runs begin, where this is the state of their DAG or of the system."""
        return self is ServiceState.ACTIVE

    def starts_tasks(self, kind: ServiceKind) -> bool:
        """Whether tasks start for the first time in an object of this kind."""
        of_runs = kind in (ServiceKind.DAG, ServiceKind.SYSTEM)
        return self is ServiceState.ACTIVE or (self is ServiceState.DRAINING and of_runs)

    def resumes(self) -> bool:
        """Whether what was started before goes on: resumes, clean-up, callbacks."""
        return self is not ServiceState.FROZEN


@dataclass(frozen=True, slots=True)
class Closures:
    """Where nothing starts for the first time: pools and executors by their limits, and queues."""

    limits: frozenset[int] = frozenset()
    queues: frozenset[str] = frozenset()

    def close(self, pool_limit: int, executor_limit: int, queue: str) -> bool:
        """Whether a limit class is closed."""
        return pool_limit in self.limits or executor_limit in self.limits or queue in self.queues


ALL_OPEN = Closures()


def is_exempt(graph: Graph, task_index: int) -> bool:
    """Whether a task starts also in what is closed: a callback, or a teardown, which is ready only when a setup of it ran."""
    if graph.spec.dag_id == CALLBACK_DAG:
        return True
    return graph.teardown[task_index] and any(graph.setup[upstream] for upstream in graph.upstream[task_index])
