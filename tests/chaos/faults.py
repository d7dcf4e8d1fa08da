"""What is done to a cluster: each kind is a function that does it, lets it last, and mends it.

A function answers once what it did is mended; what it struck is in the :class:`Strike`, for the time to recover.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import psutil

from evenflow.core.service import ServiceKind
from evenflow.killpoints import KillPoint
from tests.chaos.clock import Clock
from tests.chaos.cluster import POINTS, SERVICES, Cluster, Death, Member
from tests.chaos.leases import LEASE_S
from tests.chaos.load import Load
from tests.chaos.wires import Mode
from tests.standby import kill as kill_server

OUTLASTS_LEASE_S = 1.6 * LEASE_S
OUTAGE_S = 3.0 * LEASE_S  # R-CS7: no try is lost
HERD, HERD_S, DEATHS = 300, 30.0, 5  # tasks that wait at once, the longest of them, and deaths of each kind meanwhile
ENDS_LOST = 10  # at least, of tasks, with the primary
BACK_S = 10  # the clock of the database: so much longer waits what waits for a moment

Tries = set[tuple[str, str, str, int]]

# Not what has ended, as yet unread in the inbox: of that nothing is lost.
IN_HAND = """
select r.dag_id, r.run_id, t.task_id, d.map_index
from dispatch d
join service s on s.service_id = d.worker_id
join dag_run r using (run_key)
join task t using (version_key, task_index)
where s.name = %s and s.state in ('active', 'draining')
  and not exists (select from report p where p.run_key = d.run_key and p.epoch = d.epoch and p.kind <> 'started')
"""
ENDS = "select count(*) from task_event where event in ('succeed', 'fail', 'retry', 'defer')"
INCARNATIONS = "select count(*) from incarnation"
TRIGGERS_IN_HAND = """
select count(*)
from deferral d
join service s on s.service_id = d.triggerer_id
where s.name = %s and s.state = 'active'
"""

STRAYING = """
select distinct r.run_id
from task_instance i
join dag_run r using (run_key)
join task t using (version_key, task_index)
where r.dag_id = 'strays' and t.task_id = 'strays_for_long' and i.state = 'running' and r.state = 'running'
"""


@dataclass
class Strike:
    """One fault as it happened. Times are monotonic."""

    kind: str
    rng: random.Random
    cluster: Cluster
    load: Load
    what: str = ""
    struck_at: float = 0.0
    mended_at: float = 0.0
    lost: Tries = field(default_factory=set)  # what begins anew elsewhere
    frozen: set[int] = field(default_factory=set)  # pids of tries that were stopped with their host

    def strike(self, what: str) -> None:
        self.what, self.struck_at = what, time.monotonic()

    def last(self, seconds: float) -> None:
        self.cluster.wait(seconds)

    def choose(self, kind: ServiceKind) -> Member:
        """One that runs, and is not spared."""
        running = [member for member in self.cluster.of(kind) if member.runs() and not member.spared]
        return self.rng.choice(running or [self._next(kind)])

    def _next(self, kind: ServiceKind) -> Member:
        def running() -> list[Member]:
            return [member for member in self.cluster.of(kind) if member.runs() and not member.spared]

        found: list[Member] = self.cluster.until(running, f"a {kind}", within_s=10)
        return found[0]

    def choose_busy(self) -> Member:
        """A worker that has tries in hand, which are then noted as lost: what was triggered before may have ended already."""
        self.load.wave(("long",))

        def busy() -> Member | None:
            self.load.insist()
            member = self.choose(ServiceKind.WORKER)
            self.lost = {(row[0], row[1], row[2], row[3]) for row in self.cluster.all(IN_HAND, member.name)}
            return member if self.lost else None

        member: Member = self.cluster.until(busy, "a worker with tries in hand", within_s=30)
        return member

    def choose_waiting(self) -> Member:
        """A triggerer that has triggers in hand: those of what was triggered before may have fired already."""
        self.load.wave(("waiting",))

        def waiting() -> Member | None:
            self.load.insist()
            member = self.choose(ServiceKind.TRIGGERER)
            return member if self.cluster.one(TRIGGERS_IN_HAND, member.name) else None

        member: Member = self.cluster.until(waiting, "a triggerer with triggers in hand", within_s=30)
        return member

    def choose_at_work(self, kind: ServiceKind) -> Member:
        """One of this kind that has something to lose."""
        match kind:
            case ServiceKind.WORKER:
                return self.choose_busy()
            case ServiceKind.TRIGGERER:
                return self.choose_waiting()
        return self.choose(kind)


def kill(s: Strike, kind: ServiceKind) -> None:
    member = s.choose_at_work(kind)
    s.strike(f"SIGKILL {member.name}")
    os.kill(member.pid, signal.SIGKILL)


def kill_host(s: Strike) -> None:
    """A worker and all that it started."""
    member = s.choose_busy()
    s.strike(f"SIGKILL the host of {member.name}")
    _signal_all(member.tree(), signal.SIGKILL)


def freeze(s: Strike, kind: ServiceKind) -> None:
    """For longer than its lease. A worker's tries, and a triggerer's triggers, run on beside it."""
    member = s.choose_at_work(kind)
    s.strike(f"SIGSTOP {member.name} for {OUTLASTS_LEASE_S:.1f} s")
    os.kill(member.pid, signal.SIGSTOP)
    s.last(OUTLASTS_LEASE_S)
    os.kill(member.pid, signal.SIGCONT)


def freeze_host(s: Strike) -> None:
    member = s.choose_busy()
    s.strike(f"SIGSTOP the host of {member.name} for {OUTLASTS_LEASE_S:.1f} s")
    tree = member.tree()
    s.frozen |= {process.pid for process in tree}
    _signal_all(tree, signal.SIGSTOP)
    s.last(OUTLASTS_LEASE_S)
    _signal_all(tree, signal.SIGCONT)


def kill_trigger_hosts(s: Strike) -> None:
    """All processes in which a triggerer's triggers run, but not the triggerer."""
    member = s.choose_waiting()
    s.strike(f"SIGKILL the hosts of {member.name}")
    _signal_all(member.tree()[1:], signal.SIGKILL)


def kill_in_turn(s: Strike) -> None:
    """R-DQ9: while hundreds wait and return, triggerers, workers and schedulers die, one every two seconds."""
    run = s.load.herd(HERD, seconds=HERD_S)
    waiting = "select count(*) from deferral join dag_run using (run_key) where run_id = %s and purpose is null"
    most = s.cluster.until(lambda: (n := s.cluster.one(waiting, run)) >= HERD / 2 and n, "a herd that waits", within_s=120)
    s.strike(f"SIGKILL in turn, beginning with {most} tasks that wait")
    for kind in (ServiceKind.TRIGGERER, ServiceKind.WORKER, ServiceKind.SCHEDULER) * DEATHS:
        os.kill(s.choose(kind).pid, signal.SIGKILL)
        s.last(2.0)


def drain(s: Strike, kind: ServiceKind) -> None:
    """Replaced, as in a rolling upgrade: the new one comes before the old one goes."""
    member = s.choose(kind)
    new = s.cluster.add(kind)
    here = "select count(*) from service where name = %s and state = 'active'"
    s.cluster.until(lambda: s.cluster.one(here, new.name), f"{new.name} in place of {member.name}", within_s=30)
    s.strike(f"SIGTERM {member.name}, {new.name} came in its place")
    s.cluster.remove(member)
    s.cluster.until(lambda: not member.runs(), f"the end of {member.name}", within_s=20)


def die_at(s: Strike, point: KillPoint, *, signum: int = signal.SIGKILL) -> None:
    """A new service is to die at a point, or to stop there for longer than its lease."""
    kind = ServiceKind(point.partition("-")[0])
    death = Death(point, s.rng.choice(_times(point)), signum)
    if kind is ServiceKind.PROCESSOR:
        replaced = s.choose(kind)  # there is something to load only for the first who looks
        s.cluster.remove(replaced)
        s.cluster.until(lambda: not replaced.runs(), f"the end of {replaced.name}", within_s=20)
    member = s.cluster.add(kind, death)
    _provoke(s, point)
    s.strike(f"{signal.Signals(signum).name} {member.name} at {point}, time {death.nth}")

    def dead() -> bool:
        return f"{point} {signum:d}" in _read(s.cluster)

    deadline, waves = time.monotonic() + 30.0, 0
    more, every_s = (("waiting",), 4) if kind is ServiceKind.TRIGGERER else (("chain", "flaky", "long"), 8)
    while not dead() and time.monotonic() < deadline:
        s.last(0.3)
        if s.load.insist() and time.monotonic() > deadline - 25 + every_s * waves:
            waves += 1
            s.load.wave(more)
    if not dead():
        raise AssertionError(f"{member.name} did not come by {point} {death.nth} times in 30 s")
    s.struck_at = time.monotonic()
    if signum == signal.SIGSTOP:
        pid = member.pid
        s.last(OUTLASTS_LEASE_S)
        os.kill(pid, signal.SIGCONT)


def _times(point: KillPoint) -> tuple[int, ...]:
    """Which time that a service comes by it may be. A triggerer does with many triggers at once."""
    rare = (KillPoint.LEASES_LAPSED, KillPoint.LOSSES_REPORTED, KillPoint.SCHEDULE_INSERTED, KillPoint.RESULT_STORED)
    if point in rare or point.startswith(("processor", "api-version")):
        return (1,)
    return (1, 1, 2) if point.startswith("triggerer") else (1, 1, 2, 3, 5)


def _provoke(s: Strike, point: KillPoint) -> None:
    """What makes it likely that a service comes by ``point``."""
    if point in (KillPoint.LEASES_LAPSED, KillPoint.LOSSES_REPORTED):
        os.kill(s.choose_busy().pid, signal.SIGKILL)
    if point.startswith("processor") or point is KillPoint.VERSION_STORED:
        file = s.cluster.home / "dags" / "workload.py"
        file.write_text(file.read_text() + f"# {time.monotonic()}\n")
    if point.startswith(("scheduler", "api")):
        others = s.cluster.of(ServiceKind(point.partition("-")[0]))[:-1]  # without them the one that is to die has more to do
        for member in others:
            s.cluster.remove(member)
        s.cluster.until(lambda: not any(member.runs() for member in others), "the end of the others", within_s=20)
    if point is KillPoint.SCHEDULE_INSERTED:
        s.load.schedule()


def postgres_killed(s: Strike) -> None:
    """With all its processes, at once."""
    s.strike("SIGKILL PostgreSQL")
    kill_server(s.cluster.server)
    s.last(s.rng.uniform(0.0, 1.0))
    s.cluster.server.start()


def fail_over(s: Strike, *, loses: bool) -> None:
    """R-HA18: the primary dies, and a standby takes its place, which with ``loses`` lacks the last commits."""
    standby, asked = s.cluster.follow(), s.load.asked
    standby.catch_up()
    if loses:
        standby.lose_touch()
    else:
        standby.be_waited_for()
    before, incarnations = s.cluster.one(ENDS), s.cluster.one(INCARNATIONS)
    s.load.wave()
    ended = s.cluster.until(lambda: (n := s.cluster.one(ENDS) - before) >= ENDS_LOST and n, "ends of tasks", within_s=60)
    s.strike(f"SIGKILL the primary; a standby that {f'lacks {ended} ends of tasks' if loses else 'was waited for'} takes over")
    kill_server(s.cluster.server)
    s.last(s.rng.uniform(0.0, 1.0))
    standby.promote()
    s.cluster.took_over(standby)
    s.struck_at = time.monotonic()
    s.cluster.until(lambda: s.cluster.one(INCARNATIONS) == incarnations + 1, "a new incarnation, and one", within_s=20)
    if loses:
        assert s.cluster.one(ENDS) < before + ended, "nothing was lost: this shows nothing"
    s.load.ask_again(asked)


def postgres_restarted(s: Strike) -> None:
    s.strike("PostgreSQL restarted")
    s.cluster.server.stop()
    s.cluster.server.start()


def postgres_away(s: Strike) -> None:
    """R-CS7: an outage of three leases loses no try."""
    s.strike(f"PostgreSQL away for {OUTAGE_S:g} s")
    s.cluster.server.stop()
    s.last(OUTAGE_S)
    s.cluster.server.start()


def apis_away(s: Strike) -> None:
    members = s.cluster.of(ServiceKind.API)
    s.strike(f"all API servers away for {OUTAGE_S:g} s")
    for member in members:
        member.wanted = False
        os.kill(member.pid, signal.SIGKILL)
    s.last(OUTAGE_S)
    for member in members:
        member.wanted = True


def backends_ended(s: Strike) -> None:
    """Every connection of Evenflow, by the server."""
    s.strike("pg_terminate_backend of all")
    for _ in range(3):
        s.cluster.all("select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'evenflow%%'")
        s.last(0.1)


def wire(s: Strike, kind: ServiceKind, mode: Mode, seconds: float) -> None:
    """One service is cut off from what it talks to."""
    member = s.choose_at_work(kind)
    if seconds < LEASE_S:
        s.lost.clear()
    s.strike(f"{mode} wire of {member.name} for {seconds:.1f} s")
    member.wire.set(mode)
    s.last(seconds)
    member.wire.set(Mode.OPEN)


def all_wires(s: Strike, mode: Mode, seconds: float) -> None:
    """The database is not reached by anybody."""
    members = [*s.cluster.of(ServiceKind.SCHEDULER), *s.cluster.of(ServiceKind.API)]
    s.strike(f"{mode} wires of all to PostgreSQL for {seconds:.1f} s")
    for member in members:
        member.wire.set(mode)
    s.last(seconds)
    for member in members:
        member.wire.set(Mode.OPEN)


def disk_full(s: Strike) -> None:
    """No API process can write a byte to a file."""
    pids = [member.pid for member in s.cluster.of(ServiceKind.API) if member.runs()]
    s.strike("disk full for logs")
    for pid in pids:
        _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, most))
    s.last(3.0)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))


def clear_running(s: Strike) -> None:
    """R-CS9: what runs is to begin anew, and has started processes in sessions of their own."""
    s.load.wave(("strays",))

    def running() -> list[str]:
        s.load.insist()
        return [row[0] for row in s.cluster.all(STRAYING)]

    found: list[str] = s.cluster.until(running, "strays", within_s=30)
    s.strike(f"cleared while it ran: {', '.join(found)}")
    for run in found:
        s.load.clear_running("strays", run)


def meddle(s: Strike) -> None:
    """Claims, beats and reports come twice, late, out of order, and their answers get lost."""
    meddler = s.cluster.meddle(s.rng)
    s.strike("requests repeated, late, unanswered")
    meddler.meddles = True
    for _ in range(3):
        s.load.wave()
        s.last(2.0)
    s.cluster.meddle_no_more()
    s.what = f"requests meddled with: {meddler.did}"


def clock_jumps(s: Strike, clock: Clock | None, whose: str, seconds: int) -> None:
    """The monotonic clock does not. It stays so until the scenario ends."""
    s.strike(f"the clock of {whose} jumps by {seconds:+d} s" if clock else f"no compiler: no clock of {whose} to move")
    if clock is not None:
        clock.move(seconds)
        if clock is s.cluster.clock:
            moved = s.cluster.one("select extract(epoch from now())::float8") - time.time()
            assert abs(moved - seconds) < 2.0, "the library is not in use"
    s.last(2.0)


def come_and_go(s: Strike) -> None:
    """R-HA9: one, two, three, five schedulers, and as many of the others, under load; then one after the other leaves."""
    s.strike("up to five of each, and down again")
    came: list[Member] = []
    for count in (2, 3, 5):
        for kind in SERVICES:
            most = count if kind is ServiceKind.SCHEDULER else min(count, 3)
            came += [s.cluster.add(kind) for _ in range(most - len(s.cluster.of(kind)))]
        s.load.wave()
        s.last(2.0)
    s.cluster.until(
        lambda: s.cluster.one("select count(*) from service where kind = 'scheduler' and state = 'active'") >= 5,
        "five schedulers",
        within_s=60,
    )
    s.rng.shuffle(came)
    for member in came:
        s.cluster.remove(member)
        s.last(0.2)
    s.cluster.until(lambda: not any(member.runs() for member in came), "the end of all that came", within_s=60)


def _signal_all(processes: Iterable[psutil.Process], signum: int) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signum)


def _read(cluster: Cluster) -> list[str]:
    return cluster.passed.read_text().splitlines() if cluster.passed.exists() else []


LONG_S = OUTLASTS_LEASE_S

KINDS: dict[str, Callable[[Strike], None]] = {
    "kill-scheduler": lambda s: kill(s, ServiceKind.SCHEDULER),
    "kill-api": lambda s: kill(s, ServiceKind.API),
    "kill-worker": lambda s: kill(s, ServiceKind.WORKER),
    "kill-processor": lambda s: kill(s, ServiceKind.PROCESSOR),
    "kill-triggerer": lambda s: kill(s, ServiceKind.TRIGGERER),
    "kill-host": kill_host,
    "kill-trigger-hosts": kill_trigger_hosts,
    "kill-in-turn": kill_in_turn,
    "freeze-scheduler": lambda s: freeze(s, ServiceKind.SCHEDULER),
    "freeze-api": lambda s: freeze(s, ServiceKind.API),
    "freeze-worker": lambda s: freeze(s, ServiceKind.WORKER),
    "freeze-processor": lambda s: freeze(s, ServiceKind.PROCESSOR),
    "freeze-triggerer": lambda s: freeze(s, ServiceKind.TRIGGERER),
    "freeze-host": freeze_host,
    "drain-scheduler": lambda s: drain(s, ServiceKind.SCHEDULER),
    "drain-api": lambda s: drain(s, ServiceKind.API),
    "drain-worker": lambda s: drain(s, ServiceKind.WORKER),
    "drain-processor": lambda s: drain(s, ServiceKind.PROCESSOR),
    "drain-triggerer": lambda s: drain(s, ServiceKind.TRIGGERER),
    "postgres-killed": postgres_killed,
    "fail-over": lambda s: fail_over(s, loses=True),
    "fail-over-synchronous": lambda s: fail_over(s, loses=False),
    "postgres-restarted": postgres_restarted,
    "postgres-away": postgres_away,
    "apis-away": apis_away,
    "backends-ended": backends_ended,
    "scheduler-cut": lambda s: wire(s, ServiceKind.SCHEDULER, Mode.CUT, 1.0),
    "scheduler-stalled": lambda s: wire(s, ServiceKind.SCHEDULER, Mode.STALLED, LONG_S),
    "scheduler-half-open": lambda s: wire(s, ServiceKind.SCHEDULER, Mode.HALF_OPEN, LONG_S),
    "api-cut": lambda s: wire(s, ServiceKind.API, Mode.CUT, 1.0),
    "api-stalled": lambda s: wire(s, ServiceKind.API, Mode.STALLED, LONG_S),
    "api-half-open": lambda s: wire(s, ServiceKind.API, Mode.HALF_OPEN, LONG_S),
    "worker-blinks": lambda s: wire(s, ServiceKind.WORKER, Mode.CUT, 0.3 * LEASE_S),
    "worker-cut": lambda s: wire(s, ServiceKind.WORKER, Mode.CUT, LONG_S),
    "worker-stalled": lambda s: wire(s, ServiceKind.WORKER, Mode.STALLED, LONG_S),
    "worker-half-open": lambda s: wire(s, ServiceKind.WORKER, Mode.HALF_OPEN, LONG_S),
    "triggerer-cut": lambda s: wire(s, ServiceKind.TRIGGERER, Mode.CUT, LONG_S),
    "triggerer-stalled": lambda s: wire(s, ServiceKind.TRIGGERER, Mode.STALLED, LONG_S),
    "triggerer-half-open": lambda s: wire(s, ServiceKind.TRIGGERER, Mode.HALF_OPEN, LONG_S),
    "database-cut": lambda s: all_wires(s, Mode.CUT, 1.5),
    "database-stalled": lambda s: all_wires(s, Mode.STALLED, 1.5),
    "disk-full": disk_full,
    "meddled": meddle,
    "cleared": clear_running,
    "clock-forward": lambda s: clock_jumps(s, s.cluster.clock, "PostgreSQL", 3600),
    "clock-back": lambda s: clock_jumps(s, s.cluster.clock, "PostgreSQL", -BACK_S),
    "hosts-clock-forward": lambda s: clock_jumps(s, s.cluster.hosts_clock, "all services and tasks", 3600),
    "hosts-clock-back": lambda s: clock_jumps(s, s.cluster.hosts_clock, "all services and tasks", -3600),
    **{f"die-at-{point}": (lambda s, point=point: die_at(s, point)) for point in KillPoint if point in POINTS},  # type: ignore[misc]
    **{
        f"stop-at-{point}": (lambda s, point=point: die_at(s, point, signum=signal.SIGSTOP))  # type: ignore[misc]
        for point in (KillPoint.TURN_LOCKED, KillPoint.TURN_WRITTEN, KillPoint.CLAIM_COMMITTED, KillPoint.EXIT_REPORTING)
    },
    "come-and-go": come_and_go,
}
