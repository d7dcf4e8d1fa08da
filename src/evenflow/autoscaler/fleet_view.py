"""A fleet as an autoscaler sees it: what it has, what it needs, and what the end of each of its workers would cost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from evenflow.autoscaler.forecasting import Forecasting
from evenflow.autoscaler.target import Replica
from evenflow.core.limits import MOST_TRIES_COUNTED
from evenflow.core.quantities import counted
from evenflow.core.scaling.choosing import Candidate
from evenflow.core.scaling.fleet_options import serves
from evenflow.core.scaling.forecast import Outlook, SlotChange, most_coming
from evenflow.core.scaling.policy import Foresees, ScalingPolicy
from evenflow.core.scaling.sizing import Look
from evenflow.store.db.connect import AsyncConn
from evenflow.store.serving import scaling
from evenflow.store.serving.scaling import FleetRow, WaitingRow, WorkerRow


@dataclass(frozen=True, slots=True)
class FleetView:
    """``going`` are the workers that a plan has chosen, or that were told to end: the fleet no longer counts them."""

    fleet: FleetRow
    policy: ScalingPolicy
    look: Look  # its replicas are those that people have not taken out of service
    replicas: list[Replica]
    workers: dict[str, WorkerRow]  # of these, of each name the newest that serves its queues
    going: frozenset[str]

    @property
    def staying(self) -> list[Replica]:
        return [replica for replica in self.replicas if not replica.leaving and replica.name not in self.going]

    @property
    def out_of_service(self) -> set[str]:
        """Workers that people took out of service; they count as none, and others take their place."""
        return {name for name, worker in self.workers.items() if worker.out_of_service}

    @property
    def other_slots(self) -> str:
        """In words, that pods run more or fewer tries at once than the fleet counts for each; empty when none does. The Deployment
        says how many: the fleet cannot.
        """
        slots = self.policy.slots
        found = sorted({worker.slots for worker in self.workers.values() if worker.takes_tries} - {slots})
        if self.fleet.target != "kubernetes" or not found:
            return ""
        fits = f"evenflow autoscaler set {self.fleet.name} --slots {found[0]}"
        return f"it counts {counted(slots, 'slot')} for each worker, and there are some with {found[0]}: {fits}"


@dataclass(slots=True)
class Demand:
    """Of all fleets, at one moment: one look at workers and queues serves them all."""

    at: float
    workers: list[WorkerRow]
    waiting: dict[str, WaitingRow] = field(default_factory=dict)
    expected: dict[float, dict[str, int]] = field(default_factory=dict)  # by how far ahead it is looked, in seconds
    changes: list[SlotChange] = field(default_factory=list)  # of what runs, as far as any fleet looks ahead

    @classmethod
    async def read(cls, conn: AsyncConn, at: float, fleets: Sequence[FleetRow], forecasting: Forecasting) -> Demand:
        queues = sorted({queue for fleet in fleets for queue in fleet.queues})
        workers = await scaling.read_workers(conn)
        waiting = await scaling.count_waiting(conn, queues, most=MOST_TRIES_COUNTED)
        ahead = {fleet.rule.forecast for fleet in fleets} - {0.0}
        furthest = max((rule.forecast for fleet in fleets if (rule := fleet.rule).foresees is Foresees.GRAPH), default=0.0)
        expected = {seconds: await scaling.count_expected(conn, ahead_s=seconds, most=MOST_TRIES_COUNTED) for seconds in ahead}
        changes = await forecasting.read(conn, at, furthest) if furthest else []
        return cls(at, workers, {row.queue: row for row in waiting}, expected, changes)


def view(demand: Demand, fleet: FleetRow, replicas: list[Replica], chosen: Collection[str], untold: Collection[str]) -> FleetView:
    """``chosen`` are the workers that plans under way are about to end. Their tries need no other slots. The target has not been
    told yet of those that are ``untold``. Queues whose executor sends its tries elsewhere add no demand to the fleet.
    """
    policy = fleet.rule
    going = frozenset(chosen) | {replica.name for replica in replicas if replica.leaving}
    own = {replica.name for replica in replicas}
    there = [row for queue in fleet.queues if (row := demand.waiting.get(queue)) and serves(fleet.target, row.kind)]
    queues = {row.queue for row in there}
    named = [worker for worker in demand.workers if worker.name in own]
    serving = {worker.service_id for worker in named if not set(fleet.queues).isdisjoint(worker.queues)}
    workers = {worker.name: worker for worker in sorted(named, key=lambda worker: worker.service_id in serving)}
    others = [
        worker
        for worker in demand.workers
        if worker.name not in own and worker.takes_tries and not queues.isdisjoint(worker.queues)
    ]  # fmt: skip
    staying = [worker for name, worker in workers.items() if name not in going]
    ready = [worker for worker in staying if worker.takes_tries and worker.service_id in serving]
    held = [worker for worker in (*staying, *others) if not worker.out_of_service]
    sees = policy.forecast and policy.foresees is Foresees.GRAPH
    outlook = most_coming(demand.changes, queues, policy.forecast) if sees else Outlook()
    counts_no_more = len({replica.name for replica in replicas if not replica.leaving}.intersection(untold))
    running = _tries(held, queues)
    taken_out = sum(worker.out_of_service for worker in staying)
    look = Look(
        at=demand.at,
        running=running,
        waiting=sum(row.waiting for row in there),
        expected=sum(demand.expected.get(policy.forecast, {}).get(queue, 0) for queue in queues) + outlook.tries,
        outlook=outlook.reason,
        oldest_wait=max((row.oldest_wait for row in there), default=0.0),
        duration=_duration(held),
        replicas=max(fleet.replicas - counts_no_more - taken_out, 0),
        others=sum(worker.slots for worker in others),
        ready=sum(worker.slots for worker in ready),
        aside=_tries(demand.workers, queues) - running,
        out_of_service=taken_out,
    )
    return FleetView(fleet, policy, look, replicas, workers, going)


def _tries(workers: Iterable[WorkerRow], queues: Collection[str]) -> int:
    return sum(number for worker in workers for queue, number in (worker.by_queue or {}).items() if queue in queues)


def _duration(workers: Sequence[WorkerRow]) -> float | None:
    """Returns the duration of a try: twice the mean age of the running tries, because a look at a random moment finds them half
    way.
    """
    running = sum(worker.running for worker in workers)
    return 2 * sum((worker.age_s or 0.0) * worker.running for worker in workers) / running if running else None


def candidates(seen: FleetView, costs: Mapping[int, float | None]) -> list[Candidate]:
    """Returns those of its workers that may go. ``costs`` are by worker, for those that run something."""
    found = []
    for replica in seen.staying:
        worker = seen.workers.get(replica.name)
        if worker is None:
            found.append(Candidate(replica.name, False, seen.look.at))
        else:
            cost = costs.get(worker.service_id, 0.0)
            is_ready = worker.is_ready and replica.is_ready
            found.append(Candidate(worker.name, is_ready, worker.began_at, worker.running, cost, worker.out_of_service))
    return found
