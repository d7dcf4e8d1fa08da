"""Shape e on two hosts, each a scheduler, an API server and a worker, with one PostgreSQL: something dies in the middle (R-HA5,
R-CS7).

The processes are those of the fault suite (``tests/chaos``), with the leases that the product has and durability on. What dies
stays away, but for PostgreSQL, which is started again at once. Ends of tasks are what a scheduler is killed with in its hands, and
what finds no database; a worker dies halfway through its tasks.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import measure
import psutil
import specs
from shapes import Shape, total_tasks

from evenflow.core.limits import LEASE_S
from evenflow.core.service import ServiceKind
from evenflow.explaining.audit import audit
from evenflow.killpoints import KillPoint
from tests.chaos.cluster import DAGS, Cluster, Death, Member, NotInTime
from tests.chaos.faults import IN_HAND
from tests.chaos.load import Load
from tests.chaos.server import DURABLE, ChaosServer, chaos_server
from tests.chaos.verdict import UNFINISHED, Execution, judge, read_ledger, side_by_side
from tests.chaos.wires import Wires

SLOTS = 16  # of each worker: one alone has room for all, so that what is lost is time and not capacity
SIZES = {
    ServiceKind.API: 2,
    ServiceKind.SCHEDULER: 1,
    ServiceKind.PROCESSOR: 1,
    ServiceKind.WORKER: 2,
}  # and the scheduler that it happens to
STRUCK = "t2"  # the task of each chain at which it happens
BEFORE_END_S = 0.05  # before the first of them ends a scheduler is armed: its next commit will be about ends
HELD_LOOKS, HELD_LOOK_S = 6, 0.1
TIMEOUT_S = 180
LOST_S = 0.5  # of commits that a standby never hears of
ENDS = "select count(*) from task_event where event = 'succeed'"
DECIDED = "select extract(epoch from min(at))::float8 from task_event where at > to_timestamp(%s)"


@dataclass
class Scene:
    """A cluster in the middle of the shape. Times are monotonic."""

    cluster: Cluster
    victim: Member  # a scheduler
    armed: Path
    chains: int
    task_s: float
    struck_at: float | None = None
    lost: set[tuple[Any, ...]] = field(default_factory=set)
    seen: dict[str, Any] = field(default_factory=dict)

    def begun(self) -> float:
        """When the last chain began the task at which it happens."""

        def all_there() -> float | None:
            firsts = {e.key: e.first for e in read_ledger(self.cluster.ledger) if e.key[2] == STRUCK}
            return max(firsts.values()) if len(firsts) == self.chains else None

        return float(self.cluster.until(all_there, f"{STRUCK} of all chains", within_s=TIMEOUT_S))

    def first_end(self) -> float:
        """When the first of them will end."""
        last = self.begun()
        return min(last, *(e.first for e in read_ledger(self.cluster.ledger) if e.key[2] == STRUCK)) + self.task_s

    def wait_until(self, moment: float) -> None:
        self.cluster.wait(max(0.0, moment - time.monotonic()))

    def strike(self) -> None:
        self.struck_at = time.monotonic()


def _scheduler_dies(scene: Scene) -> None:
    scene.wait_until(scene.first_end() - BEFORE_END_S)
    scene.victim.wanted = False
    scene.armed.touch()
    death = scene.victim.death
    assert death is not None
    line = f"{death.point} {death.signal:d}"
    passed = scene.cluster.passed
    scene.cluster.until(lambda: line in passed.read_text().splitlines(), "the scheduler's next commit", within_s=30)
    scene.strike()


def _scheduler_stops(scene: Scene) -> None:
    _scheduler_dies(scene)
    free = "select count(*) from (select from dag_run where state = 'running' for update skip locked) as free"
    held = "select count(*) from dag_run where state = 'running'"
    looks = []  # the other one holds runs too, but never for long
    for _ in range(HELD_LOOKS):
        looks.append(scene.cluster.one(held) - scene.cluster.one(free))
        scene.cluster.wait(HELD_LOOK_S)
    scene.seen["runs_held"] = min(looks)


def _busiest_worker(scene: Scene) -> Member:
    """Halfway through what it has in hand, which is noted as lost."""
    scene.wait_until(scene.begun() + scene.task_s / 2)
    hands = {member: scene.cluster.all(IN_HAND, member.name) for member in scene.cluster.of(ServiceKind.WORKER)}
    worker = max(hands, key=lambda member: len(hands[member]))
    scene.lost = {tuple(row) for row in hands[worker]}
    return worker


def _worker_dies(scene: Scene) -> None:
    worker = _busiest_worker(scene)
    worker.wanted = False
    scene.strike()
    os.kill(worker.pid, signal.SIGKILL)


def _host_dies(scene: Scene) -> None:
    members = [scene.victim, scene.cluster.of(ServiceKind.API)[0], _busiest_worker(scene)]
    processes = [process for member in members for process in member.tree()]
    for member in members:
        member.wanted = False
    scene.strike()
    _kill(processes)


def _postgres_dies(scene: Scene) -> None:
    """Before tasks end, so that their reports wait for it."""
    scene.wait_until(scene.first_end() - BEFORE_END_S)
    server = scene.cluster.server.running()
    assert server is not None
    processes = measure.tree(server.pid)
    scene.strike()
    _kill(processes)
    psutil.wait_procs(processes, timeout=10)  # a new one refuses to start while the old pid is known
    scene.cluster.server.start()
    accepting = time.time()
    first = scene.cluster.until(lambda: scene.cluster.one(DECIDED, accepting), "a decision", within_s=60)
    scene.seen |= {
        "away_s": round(accepting - wall(scene.struck_at), 2),
        "first_decision_s": round(first - accepting, 2),
    }


def _primary_dies(scene: Scene) -> None:
    """With ends of tasks that its standby has not heard of."""
    standby = scene.cluster.follow()
    scene.wait_until(scene.first_end() - BEFORE_END_S)
    standby.catch_up()
    standby.lose_touch()
    before = scene.cluster.one(ENDS)
    scene.cluster.until(lambda: scene.cluster.one(ENDS) > before, "ends of tasks", within_s=60)
    scene.cluster.wait(LOST_S)
    ended = scene.cluster.one(ENDS)
    scene.strike()
    standby.take_over()
    promoted = time.time()
    scene.cluster.took_over(standby)
    first = scene.cluster.until(lambda: scene.cluster.one(DECIDED, promoted), "a decision", within_s=60)
    scene.seen |= {
        "away_s": round(promoted - wall(scene.struck_at), 2),
        "first_decision_s": round(first - promoted, 2),
        "ends_lost": ended - scene.cluster.one(f"{ENDS} and at < to_timestamp(%s)", promoted),
    }


def wall(moment: float | None) -> float:
    """A monotonic moment in seconds since 1970."""
    assert moment is not None
    return time.time() - time.monotonic() + moment


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


@dataclass(frozen=True)
class Fault:
    do: Callable[[Scene], None]
    within: Callable[[dict[str, Any]], bool]  # the bar
    signal: int | None = None  # what the scheduler gets that holds locks, with all written and not committed


def _unharmed(line: dict[str, Any]) -> bool:
    return not (line["at_once"] or line["tries_used"] or line["not_successful"])


FAULTS = {
    "kill-scheduler": Fault(
        _scheduler_dies, lambda line: _unharmed(line) and line["extra_s"] <= 2 and not line["begun_twice"], signal.SIGKILL
    ),
    "kill-host": Fault(_host_dies, lambda line: _unharmed(line) and line["extra_s"] <= LEASE_S + 2),
    "kill-worker": Fault(_worker_dies, lambda line: _unharmed(line) and line["elsewhere_s"] <= LEASE_S + 2),
    "kill-postgres": Fault(
        _postgres_dies, lambda line: _unharmed(line) and line["first_decision_s"] <= 3 and not line["begun_twice"]
    ),
    "kill-primary": Fault(
        _primary_dies,
        lambda line: _unharmed(line) and line["first_decision_s"] <= 10 and not line["hung"] and line["ends_lost"] > 0,
    ),
    "stop-scheduler": Fault(
        _scheduler_stops, lambda line: _unharmed(line) and line["longest_lag_s"] <= 5 and not line["begun_twice"], signal.SIGSTOP
    ),
}


def run(shape: Shape, *, fault: str | None, runs: int) -> Iterator[dict[str, Any]]:
    """First one run undisturbed, then ``runs`` with the fault; without one, ``runs`` undisturbed."""
    with chaos_server(leases={}, settings=DURABLE) as chaos:
        undisturbed = 0.0
        for number in range(runs + 1 if fault else runs):
            struck = fault if number else None
            line = _played(chaos, shape, struck)
            if struck is None:
                undisturbed = line["total_s"]
            else:
                line |= {"undisturbed_s": undisturbed, "extra_s": round(line["total_s"] - undisturbed, 2)}
                line["within_bar"] = FAULTS[struck].within(line)
            yield line


def _played(chaos: ChaosServer, shape: Shape, fault: str | None) -> dict[str, Any]:
    home = Path(tempfile.mkdtemp(prefix="evenflow-bench-"))
    home.chmod(0o755)
    written = home / "written"
    written.mkdir()
    shutil.copy(DAGS / "ledger.py", written)
    (written / "shape.py").write_text(specs.dag_file(shape, specs.WRITES_LEDGER))
    dag_ids = [plan.spec.dag_id for plan in specs.plan(shape)]
    signum = FAULTS[fault].signal if fault else None
    armed = home / "armed"
    with Wires() as wires:
        cluster = Cluster(chaos, home, wires, dags=written, dags_in_it=len(dag_ids), slots=SLOTS)
        try:
            cluster.start(SIZES)
            victim = cluster.add(ServiceKind.SCHEDULER, None if signum is None else Death(KillPoint.TURN_WRITTEN, 1, signum, armed))
            here = "select count(*) from service where name = %s and state = 'active'"
            cluster.until(lambda: cluster.one(here, victim.name), "both schedulers", within_s=60)
            load = Load(cluster, runs=0)
            scene = Scene(cluster, victim, armed, len(dag_ids), max(group["sleep_s"] for group in shape["groups"]))
            load.wave(dag_ids)
            cluster.until(load.insist, "all runs to be accepted", within_s=TIMEOUT_S)
            if fault:
                FAULTS[fault].do(scene)
            with contextlib.suppress(NotInTime):
                cluster.until(lambda: cluster.one(UNFINISHED) == 0, "the end of all runs", within_s=TIMEOUT_S)
            return {"schedulers": SIZES[ServiceKind.SCHEDULER] + 1, "fault": fault, **_line(scene, load, total_tasks(shape))}
        finally:
            cluster.kill()
            shutil.rmtree(home, ignore_errors=True)


def _line(scene: Scene, load: Load, tasks: int) -> dict[str, Any]:
    cluster, executions = scene.cluster, read_ledger(scene.cluster.ledger)
    ((begin, end),) = cluster.all(
        "select extract(epoch from min(created_at))::float8, extract(epoch from max(ended_at))::float8 from dag_run"
    )
    began: dict[Any, int] = defaultdict(int)
    ended: dict[Any, int] = defaultdict(int)
    for execution in executions:
        began[execution.key] += 1
        ended[execution.key] += execution.count("end")
    with cluster.database() as conn:
        findings = audit(conn)
    wrong = judge(cluster, load, set())
    lags = _lags(executions)
    line = {
        "ok": not wrong,
        "wrong": wrong,
        "load": measure.load(),
        "tasks": tasks,
        "total_s": round(end - begin, 2),
        "lag_s": measure.quantiles(lags),
        "longest_lag_s": round(max(lags), 2),
        "begun_twice": sum(count > 1 for count in began.values()),
        "at_once": sum(1 for _ in side_by_side(executions, set())),
        "finished_twice": sum(count > 1 for count in ended.values()),
        "hung": cluster.one(UNFINISHED),
        "never_finished": tasks - sum(count > 0 for count in ended.values()),
        "tries_used": cluster.one("select coalesce(sum(greatest(try_number - 1, 0)), 0)::int from task_instance"),
        "not_successful": cluster.one("select count(*) from dag_run where state <> 'success'"),
        "findings": len(findings),
    }
    return {**line, **scene.seen, **(_aftermath(scene, executions, end) if scene.struck_at is not None else {})}


def _aftermath(scene: Scene, executions: list[Execution], end: float) -> dict[str, Any]:
    """``elsewhere_s``: until all that was lost had begun anew; ``redone_s``: the most that one of these had done."""
    struck = scene.struck_at or 0.0
    line = {"after_kill_s": round(end - wall(struck), 2)}
    if after := [e.first for e in executions if e.first > struck]:
        line["first_start_s"] = round(min(after) - struck, 2)
    again = [min((e.first for e in executions if e.key == key and e.first > struck), default=struck) for key in scene.lost]
    if again:
        done = [struck - e.first for e in executions if e.key in scene.lost and e.first < struck]
        line |= {"lost": len(again), "elsewhere_s": round(max(again) - struck, 2), "redone_s": round(max(done, default=0.0), 2)}
    return line


def _lags(executions: list[Execution]) -> list[float]:
    """From the end of a task to the first start of its successor."""
    chains: dict[str, dict[str, tuple[float, float]]] = defaultdict(dict)
    for execution in executions:
        first, last = chains[execution.key[0]].get(execution.key[2], (execution.first, execution.last))
        chains[execution.key[0]][execution.key[2]] = (min(first, execution.first), max(last, execution.last))
    return [chain[after][0] - chain[before][1] for chain in chains.values() for before, after in itertools.pairwise(sorted(chain))]
