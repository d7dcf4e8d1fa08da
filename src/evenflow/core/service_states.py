"""States of service: what a DAG, a pool, a queue, a worker or the whole system still accepts, and what continues in any case.

Theory of operation
-------------------
A task instance *starts for the first time* when selection grants it. What has started continues in every state but ``frozen``:
tries run to their end, deferred ones return, and clean-up and notifications run, that is teardowns whose setup ran, ``on_kill`` and
callbacks. So closing something never strands work in flight (R-DQ7).

* ``draining``: the object accepts nothing new, and its present work is waited for; then it becomes ``paused`` by itself. For a DAG
or the system, a new thing is a run: runs that have begun run to their end. For a pool, a queue or a worker it is a first start.
* ``resume_only`` and ``paused``: nothing starts for the first time. They allow the same and tell people different things.
* ``frozen``: as ``paused``; besides, work that waits for a worker keeps waiting, including resumes and clean-up. Work on a worker
runs on.

Neither lanes nor dispatches change when something is closed or opened: rounds skip the limit classes of a closed pool or queue as
if they were full, so it costs the same with a backlog of none and of a million. Only a paused DAG parks its lanes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from evenflow.core.callbacks import CALLBACK_DAG
from evenflow.core.graph import Graph

SYSTEM = "all"  # the name of the one object of kind ``system``

# Why something that drained is paused.
DRAINED = "it has drained"
GAVE_UP = "its drain gave up waiting at the deadline"


class ObjectKind(StrEnum):
    """The kinds of object that have a state of service."""

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
        """Whether runs begin, if this is the state of their DAG or of the system."""
        return self is ServiceState.ACTIVE

    def starts_tasks(self, kind: ObjectKind) -> bool:
        """Returns whether tasks start for the first time in an object of this kind."""
        of_runs = kind in (ObjectKind.DAG, ObjectKind.SYSTEM)
        return self is ServiceState.ACTIVE or (self is ServiceState.DRAINING and of_runs)

    def resumes(self) -> bool:
        """Whether earlier work continues: resumes, clean-up, callbacks."""
        return self is not ServiceState.FROZEN


@dataclass(frozen=True, slots=True)
class Closures:
    """Where no task starts for the first time: pools and executors by their limits, and queues."""

    limits: frozenset[int] = frozenset()
    queues: frozenset[str] = frozenset()

    def close(self, pool_limit: int, executor_limit: int, queue: str) -> bool:
        """Returns whether a limit class is closed."""
        return pool_limit in self.limits or executor_limit in self.limits or queue in self.queues


ALL_OPEN = Closures()


def is_exempt(graph: Graph, task_index: int) -> bool:
    """Returns whether a task also starts in a closed object: a callback, or a teardown, which is ready only if a setup of
    it ran.
    """
    if graph.spec.dag_id == CALLBACK_DAG:
        return True
    return graph.teardown[task_index] and any(graph.setup[upstream] for upstream in graph.upstream[task_index])
