"""One scenario: a seed says how many services there are and what is done to them; afterwards all must be as if nothing had been."""

from __future__ import annotations

import itertools
import random
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenflow.core.service import ServiceKind
from evenflow.explaining.audit import audit
from tests.chaos.cluster import Cluster, NotInTime
from tests.chaos.faults import KINDS, Strike
from tests.chaos.load import Load
from tests.chaos.server import ChaosServer
from tests.chaos.verdict import IN_FLIGHT, UNFINISHED, judge, read_ledger
from tests.chaos.wires import Wires

FINISH_WITHIN_S = 60.0
REST_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What a seed stands for."""

    seed: int
    sizes: dict[ServiceKind, int]
    faults: tuple[str, ...]

    @classmethod
    def of(cls, seed: int) -> Plan:
        """Every kind of fault comes once in as many seeds as there are kinds; a second one, by chance, comes with it."""
        rng = random.Random(seed)
        kinds = list(KINDS)
        first = kinds[seed % len(kinds)]
        second = rng.choice([kind for kind in kinds if kind != "come-and-go" and not kind.startswith(("die", "stop"))])
        sizes = {
            ServiceKind.API: rng.choice((1, 2)),
            ServiceKind.SCHEDULER: rng.choice((1, 2, 2, 3)),
            ServiceKind.PROCESSOR: 1,
            ServiceKind.WORKER: 2,
        }
        sizes[ServiceKind.TRIGGERER] = rng.choice((1, 2))
        return cls(seed, sizes, (first,) if first == "come-and-go" else (first, second))


@dataclass
class Outcome:
    plan: Plan
    wrong: list[str] = field(default_factory=list)
    faults: list[dict[str, Any]] = field(default_factory=list)
    passed: set[str] = field(default_factory=set)  # kill points
    seconds: float = 0.0

    def line(self) -> dict[str, Any]:
        """For a file of JSON lines."""
        return {
            "seed": self.plan.seed,
            "sizes": {str(kind): size for kind, size in self.plan.sizes.items()},
            "faults": self.faults,
            "seconds": round(self.seconds, 1),
            "passed": sorted(self.passed),
            "wrong": self.wrong,
        }


def run(plan: Plan, chaos: ChaosServer, home: Path) -> Outcome:
    """``home`` is empty; with the logs of a scenario that went wrong it stays."""
    began = time.monotonic()
    outcome = Outcome(plan)
    rng = random.Random(plan.seed)
    with Wires() as wires:
        cluster = Cluster(chaos, home, wires)
        strikes: list[Strike] = []
        try:
            cluster.start(plan.sizes)
            load = Load(cluster)
            for kind in plan.faults:
                load.wave()
                _wait_for_work(cluster, load)
                cluster.wait(rng.uniform(0.0, 0.8))
                strike = Strike(kind, rng, cluster, load)
                strikes.append(strike)
                KINDS[kind](strike)
                strike.mended_at = time.monotonic()
                load.wave()
            finish(cluster, load)
            frozen = set().union(*(strike.frozen for strike in strikes))
            outcome.wrong += judge(cluster, load, frozen)
            outcome.faults = [_measured(strike) for strike in strikes]
            outcome.wrong += cluster.end()
        except Exception as error:  # what is wrong with this one shall not keep the next from running
            outcome.wrong.append("".join(traceback.format_exception(error)) if not isinstance(error, NotInTime) else str(error))
            outcome.wrong += _stuck(cluster) if isinstance(error, NotInTime) else []
        finally:
            for clock in (chaos.clock, chaos.hosts_clock):
                if clock is not None:
                    clock.move(0)
            cluster.kill()
        if cluster.passed.exists():
            outcome.passed = {line.split()[0] for line in cluster.passed.read_text().splitlines()}
    outcome.seconds = time.monotonic() - began
    return outcome


def _wait_for_work(cluster: Cluster, load: Load) -> None:
    """Until something of what was triggered last is done. An API that is just beginning anew has accepted none of it."""
    seen = len(read_ledger(cluster.ledger))

    def is_done() -> bool:
        load.insist()
        return len(read_ledger(cluster.ledger)) > seen + 3

    cluster.until(is_done, "some work", within_s=FINISH_WITHIN_S)


def finish(cluster: Cluster, load: Load) -> None:
    cluster.until(load.insist, "all runs to be accepted", within_s=FINISH_WITHIN_S)
    cluster.until(
        lambda: cluster.one("select count(*) from dag_run") >= load.runs and cluster.one(UNFINISHED) == 0,
        "the end of all runs",
        within_s=FINISH_WITHIN_S,
    )
    cluster.until(lambda: cluster.one(IN_FLIGHT) == 0, "rest", within_s=REST_WITHIN_S)


def _stuck(cluster: Cluster) -> list[str]:
    """What is not over, and what the auditor says."""
    live = cluster.all(
        "select r.dag_id, r.run_id, r.state::text, t.task_id, i.state::text, i.epoch, d.worker_id, d.claimed_at from dag_run r"
        " left join task_instance i on i.run_key = r.run_key and i.state not in ('success', 'failed', 'skipped', 'upstream_failed')"
        " left join task t on t.version_key = r.version_key and t.task_index = i.task_index"
        " left join dispatch d on d.epoch = i.epoch"
        " where r.state in ('queued', 'running') limit 20"
    )
    inbox = cluster.all("select kind::text, count(*) from report group by 1")
    waits = cluster.all("select epoch, trigger, purpose, triggerer_id, claim_number, failures, due_at from deferral limit 20")
    services = cluster.all("select name, state::text, now() - beat_at from service order by service_id")
    with cluster.database() as conn:
        findings = audit(conn)
    return [
        *(f"not over: {row}" for row in live),
        *(f"deferred: {row}" for row in waits),
        f"reports: {inbox}",
        *(f"{row}" for row in services),
        *map(str, findings[:10]),
    ]


def _measured(strike: Strike) -> dict[str, Any]:
    """How long it took until work went on: what was lost has begun anew, or else, after the end of the fault, anything has."""
    executions = read_ledger(strike.cluster.ledger)
    begins = [(execution.first, execution.key) for execution in executions]
    moments = sorted(moment for execution in executions for moment in (execution.first, execution.last))
    if strike.lost:
        again = [min((at for at, key in begins if key == lost and at > strike.struck_at), default=None) for lost in strike.lost]
        recovered = max((at for at in again if at is not None), default=strike.struck_at) - strike.struck_at
    else:
        recovered = min((at for at, _ in begins if at > strike.mended_at), default=strike.mended_at) - strike.mended_at
    until = max(strike.mended_at, strike.struck_at + recovered) if strike.lost else strike.mended_at + recovered
    during = [strike.struck_at, *(at for at in moments if strike.struck_at < at < until), until]
    silence = max((after - before for before, after in itertools.pairwise(during)), default=0.0)
    return {
        "kind": strike.kind,
        "what": strike.what,
        "lasted_s": round(strike.mended_at - strike.struck_at, 2),
        "lost_tries": len(strike.lost),
        "recovered_s": round(recovered, 2),
        "silence_s": round(silence, 2),
    }
