"""Scenarios: runs of DAGs made at random, schedulers and workers and API servers that die while they work, messages that are lost,
late and doubled, leases that lapse. Everything is drawn from one seed.

The clock is simulated by moving what is stored into the past: a second passes when every instant that a rule compares with the time
is a second older, and workers' own clocks are a second further (:class:`Clock`). What a statement costs passes too, on both sides.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import zlib
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace

import psycopg

from evenflow.api.inbox import Inbox
from evenflow.core.graph import Graph
from evenflow.core.model import DagSpec
from evenflow.explaining.audit import audit
from evenflow.scheduler.advance import TurnOutcome
from tests.crashes.ledger import Ledger, Process
from tests.crashes.registered import Clock, Conn, OneConnection
from tests.crashes.schedulers import Doom, Manner, Scheduler
from tests.crashes.triggerers import Running, Triggerer
from tests.crashes.workers import Worker
from tests.scheduler.workloads import random_dag
from tests.scheduler.world import World

STATEMENTS = 40  # that a turn may have: a doom above the real number spares it
TRIGGERING = 3  # steps of triggerers for each of all others
FAILING = 0.2  # of all tries, by themselves
LOSSES = 2  # of a task that do not count
WAITING, MOST_WAITS = 0.4, 2  # of all processes are deferred, and how often in a try
KEEPING = (None, None, {"pool": "release"}, {"run": "hold", "executor": "hold"}, {"task_limits": "release", "pool": "hold"})
MOST_WAITED = 0.3  # seconds, by who needs a lock of a scheduler that stands still
PATIENCE = 12  # rounds of 4 s in which nothing begins, before it is said that nothing will: three leases

# fmt: off
OF_RUNS = (
    "task_event", "run_event", "task_instance", "upstream_counter", "mapped_task", "dispatch", "deferral", "report", "timer",
    "lane", "ready_task", "wake", "xcom", "service", "dag_run",
)
# fmt: on
FRESH = (
    *(f"delete from {table}" for table in OF_RUNS),
    "delete from concurrency_limit where run_key <> 0",
    "update concurrency_limit set used = 0",
    "insert into service (kind, name, host, pid, version) values ('api', 'a', 'h', 1, '0')",
    "update lease_clock set ticked_at = now(), counted_from = now() - interval '1 hour'",
    "delete from setting where name = 'direct_resume'",
)
INDIRECT = "insert into setting (name, value, changed_by) values ('direct_resume', 'false', 'test')"
PASS_TIME = """
with beats as (update service set beat_at = beat_at - make_interval(secs => %(s)s) where kind <> 'api'),
waits as (
    update deferral
    set due_at = due_at - make_interval(secs => %(s)s), claimed_at = claimed_at - make_interval(secs => %(s)s),
        deferred_at = deferred_at - make_interval(secs => %(s)s)
),
timers as (update timer set due_at = due_at - make_interval(secs => %(s)s)),
tries as (
    update dispatch
    set created_at = created_at - make_interval(secs => %(s)s), claimed_at = claimed_at - make_interval(secs => %(s)s)
),
servers as (update service set beat_at = now() where kind = 'api')
update lease_clock set ticked_at = now(), counted_from = counted_from - make_interval(secs => %(s)s)
"""
OUTAGE = """
with services as (update service set beat_at = beat_at - make_interval(secs => %(s)s))
update lease_clock
set ticked_at = ticked_at - make_interval(secs => %(s)s), counted_from = counted_from - make_interval(secs => %(s)s)
"""
LEFT = """
select (select count(*) from report) as reports, (select count(*) from dispatch) as dispatches,
       (select count(*) from lane) as lanes, (select count(*) from deferral) as deferrals,
       (select count(*) from concurrency_limit where used <> 0) as held, (select count(*) from timer) as timers
"""
NOT_ONCE = """
select run_key, task_index, map_index, count(*) filter (where event = 'defer'),
       count(*) filter (where event in ('resume', 'ordinary_resume'))
from task_event
group by 1, 2, 3
having count(*) filter (where event = 'defer') <> count(*) filter (where event in ('resume', 'ordinary_resume'))
"""


class Story:
    """One scenario. The API server has two connections, one for ``reports``. ``steady``: nobody dies and nothing is late, but there
    are outages.
    """

    def __init__(
        self, world: World, url: str, api: Conn, reports: Conn, schedulers: list[Scheduler], seed: int, *, steady: bool = False
    ) -> None:
        self.r = random.Random(seed)
        self.waits = random.Random(f"what waits in {seed}")
        self.world, self.conn, self.url, self.steady = world, world.conn, url, steady
        for statement in FRESH:
            self.conn.execute(statement)
        if self.waits.random() < 0.25:
            self.conn.execute(INDIRECT)
        self.seed = seed
        self.schedulers = schedulers[: self.r.randint(2, len(schedulers))]
        self.ledger, self.clock = Ledger(), Clock()
        self.sent: list[str] = []
        self.company = random.Random(f"who reports together in {seed}")
        self.inbox = Inbox(OneConnection(reports, self._breaks))  # type: ignore[arg-type]
        self.workers = [
            Worker(api, self.clock, self.r, self.sent, self.inbox, self.ledger, self._judge, self.r.randint(1, 4))
            for _ in range(self.r.randint(1, 3))
        ]
        self.triggers, self.told = Running(), list[str]()
        self.silent: Triggerer | None = None  # whom nobody hears, while its triggers run on
        self.triggerers = [
            Triggerer(api, self.clock, self.waits, self.told, self.triggers, lambda: self.waits.random() < FAILING)
            for _ in range(self.waits.randint(1, 2))
        ]
        self.specs = [self._dag(number) for number in range(self.r.randint(1, 2))]
        self.runs = [self._trigger() for _ in range(self.r.randint(1, 4))]
        self.deaf: Worker | None = None  # whom nobody hears, while its processes run on
        self.done: Counter[str] = Counter()

    def _dag(self, number: int) -> DagSpec:
        spec = random_dag(self.r, self.seed * 10 + number)
        tasks = tuple(
            replace(task, infrastructure_retries=LOSSES, while_deferred=self.waits.choice(KEEPING)) for task in spec.tasks
        )
        spec = replace(spec, tasks=tasks)
        self.world.add_dag(spec)
        return spec

    def _trigger(self) -> tuple[int, DagSpec]:
        spec = self.r.choice(self.specs)
        return self.world.trigger(spec.dag_id), spec

    def _judge(self, process: Process) -> str:
        """The same try of a task ends the same way, wherever and however often it runs, after as many waits."""
        tried = (self.seed, process.of.task_index, process.of.map_index, process.try_number)
        if process.purpose == "failed":
            return "failed"
        if process.waited < MOST_WAITS and _chance((*tried, process.waited)) < WAITING:
            return "deferred"
        chance = _chance(tried)
        return "failed" if chance < FAILING else "success"

    # -- what may happen

    async def play(self, steps: int) -> None:
        often = [self.turn, self.claim, self.beat, self.finish, self.report, self.leases, self.pass_time]
        seldom = [self.turn, self.turns_at_once, self.overtaken, self.overtaken, self.hear, self.pass_time, self.outage]
        if not self.steady:
            seldom += [self.die, self.leave, self.repeat, self.partition, self.forget]
        actions = [*often, *often, *seldom]
        for _ in range(steps):
            action = self.r.choice(actions)
            self.done[action.__name__] += 1
            await action()
            for _ in range(TRIGGERING):
                await self.trigger()
            for one in (*self.workers, *self.triggerers):
                one.look_at_clock()

    def doom(self) -> Doom | None:
        if self.steady or self.r.random() < 0.5:
            return None
        return Doom(self._statement(), self.r.choice([Manner.SILENT, Manner.CUT, Manner.UNANSWERED]))

    def _statement(self) -> int:
        """Short turns are the most."""
        return int(STATEMENTS * self.r.random() ** 2)

    def dies(self) -> bool:
        return not self.steady and self.r.random() < 0.3

    async def turn(self) -> None:
        self.r.choice(self.schedulers).turn(self.doom(), max_runs=self.r.choice([1, 200]))

    async def turns_at_once(self) -> None:
        """Two, and only the server decides how their statements mix. None dies by a kill point: those are of a whole process."""
        dooms = [self.doom() for _ in range(2)]
        spared = [None if doom is None or doom.manner is Manner.UNANSWERED else doom for doom in dooms]
        both = zip(self.r.sample(self.schedulers, 2), spared, strict=True)
        await asyncio.gather(*(asyncio.to_thread(scheduler.turn, doom) for scheduler, doom in both))

    async def overtaken(self) -> None:
        """Somewhere in a turn or a look at leases a scheduler stands still for a while, with its locks. Another has its turn; if
        it waits for one of them, it gets it when the first goes on.
        """
        slow, quick = self.r.sample(self.schedulers, 2)
        does = self.r.choice([quick.turn, quick.turn, quick.look_at_leases])
        with ThreadPoolExecutor(1) as thread:
            others: list[Future[object]] = []

            def meanwhile() -> None:
                others.append(thread.submit(does))
                self.done["waited"] += len(wait(others, timeout=MOST_WAITED).not_done)

            self.r.choice([slow.turn, slow.look_at_leases])(Doom(self._statement(), Manner.OVERTAKEN, meanwhile))
            for other in others:
                other.result()

    async def leases(self) -> None:
        self.r.choice(self.schedulers).look_at_leases(self.doom())

    async def heard(self) -> Worker | None:
        """One that is registered and can be heard."""
        worker = self.r.choice(self.workers)
        if worker is self.deaf:
            return None
        if worker.service_id is None:
            await worker.register()
        return worker

    async def trigger(self) -> None:
        """What a triggerer does next; when all is steady none dies, and no answer is late."""
        triggerer, r = self.waits.choice(self.triggerers), self.waits
        dies, late = (not self.steady and r.random() < 0.3 for _ in range(2))
        if not self.steady and r.random() < 0.015:
            self.silent = r.choice([None, *self.triggerers])
        if triggerer is self.silent:
            if r.random() < 0.1:
                triggerer.finish_one()
            return
        if triggerer.service_id is None:
            await triggerer.register()
        match r.choice(("claim", "claim", "beat", "fire", "report", "report", "hear", "repeat", "end")):
            case "claim":
                await triggerer.claim(api_dies=dies, late=late)
            case "beat":
                await triggerer.beat(api_dies=dies, late=late)
            case "fire":
                triggerer.finish_one()
            case "report":
                await triggerer.report(api_dies=dies)
            case "hear":
                triggerer.hear()
            case "repeat" if self.told and not self.steady:
                await triggerer.tell_again(r.choice(self.told[-9:]))
            case "end" if dies and late:
                self.done["triggerers ended"] += 1
                triggerer.die() if r.random() < 0.5 else await triggerer.leave()

    async def claim(self) -> None:
        if (worker := await self.heard()) is not None:
            await worker.claim(api_dies=self.dies(), late=self.dies())

    async def beat(self) -> None:
        if (worker := await self.heard()) is not None:
            await worker.beat(api_dies=self.dies(), late=self.dies())

    async def report(self) -> None:
        """One, and who of the others has something to say at this moment."""
        if (worker := await self.heard()) is not None:
            others = [w for w in self.workers if w is not self.deaf and w.service_id is not None and self.company.random() < 0.5]
            together = [worker, *(other for other in others if other is not worker)]
            self.done["together"] += len(together) > 1
            await asyncio.gather(*(w.report(api_dies=self.dies(), starts=self.r.random() < 0.3) for w in together))

    def _breaks(self) -> bool:
        """Whether the connection by which reports are stored does, of an API server that lives."""
        breaks = not self.steady and self.company.random() < 0.3
        self.done["broken commits"] += breaks
        return breaks

    async def finish(self) -> None:
        self.r.choice(self.workers).finish_one()

    async def hear(self) -> None:
        self.r.choice(self.workers).hear()

    async def die(self) -> None:
        if self.r.random() < 0.3:
            self.r.choice(self.workers).die()

    async def leave(self) -> None:
        if self.r.random() < 0.2:
            await self.r.choice(self.workers).leave()

    async def repeat(self) -> None:
        """What was reported once arrives again, however late."""
        if self.sent:
            with contextlib.suppress(psycopg.OperationalError):
                await self.r.choice(self.workers).resend(self.r.choice(self.sent))

    async def forget(self) -> None:
        """R-HA18: the database has lost a report that it had acknowledged, mostly of a try that has just ended."""
        await self.finish()
        await self.report()
        lost = self.conn.execute(
            "delete from report where report_id = (select report_id from report where kind = 'exit' order by report_id limit 1)"
        )
        self.done["forgotten"] += lost.rowcount

    async def pass_time(self) -> None:
        """Who can be heard beats meanwhile."""
        self._pass(self.r.uniform(1.0, 8.0))
        for worker in self.workers:
            if worker is not self.deaf and worker.service_id is not None:
                await worker.beat()
        for triggerer in self.triggerers:
            if triggerer.service_id is not None and triggerer is not self.silent:
                await triggerer.beat()

    async def partition(self) -> None:
        """Until the next one, or the end; mostly of one that is busy."""
        busiest = max(self.workers, key=lambda worker: len(worker.running))
        self.deaf = self.r.choice([None, busiest, busiest, *self.workers])

    async def outage(self) -> None:
        """Longer than all leases; then a scheduler looks first, and everybody else after it."""
        if self.r.random() < 0.3:
            seconds = self.r.uniform(4.0, 60.0)
            self.clock.added += seconds
            self.conn.execute(OUTAGE, {"s": seconds})
            for one in (*self.workers, *self.triggerers):
                one.look_at_clock()
            self.conn.execute("update service set beat_at = now() where kind = 'api'")
            self.r.choice(self.schedulers).look_at_leases()

    def _pass(self, seconds: float) -> None:
        self.clock.added += seconds
        self.conn.execute(PASS_TIME, {"s": seconds})

    # -- the end

    async def quiesce(self) -> None:
        """All live and are heard; returns when all runs have ended. Then all that was ever reported arrives once more."""
        still, self.steady = 0, True
        while self._live_runs() and still < PATIENCE:
            before = len(self.ledger.begun), self.triggers.begun
            self._settle()
            self._pass(4.0)
            await self._serve_triggers()
            for worker in self.workers:
                worker.answers.clear()
                if worker.service_id is None:
                    await worker.register()
                await worker.beat()
                if worker.service_id is not None:
                    await worker.claim()
                worker.finish_all()
                await worker.report()
            self.schedulers[0].look_at_leases()
            still = 0 if (len(self.ledger.begun), self.triggers.begun) != before else still + 1
        assert not self._live_runs(), [(run, self.world.states(run)) for run in self._live_runs()]
        for text in self.sent:
            await self.workers[0].resend(text)
        for text in self.told:
            await self.triggerers[0].tell_again(text)
        self._settle()

    async def _serve_triggers(self) -> None:
        """And what was told last is told once more first: it is of no deferral that waits."""
        for text in self.told[-9:]:
            await self.triggerers[0].tell_again(text)
        for triggerer in self.triggerers:
            triggerer.answers.clear()
            if triggerer.service_id is None:
                await triggerer.register()
            await triggerer.beat()
            if triggerer.service_id is not None:
                await triggerer.claim()
            triggerer.finish_all()
            await triggerer.report()

    def _settle(self) -> None:
        for _ in range(200):
            progress: TurnOutcome | None = self.schedulers[0].turn()
            assert progress is not None
            if not progress.again and not progress.reports and not progress.moves:
                return
        raise AssertionError("turns do not come to rest")

    def _live_runs(self) -> list[int]:
        return [run for run, _ in self.runs if self.world.run_state(run) not in ("success", "failed")]

    def check(self) -> None:
        """Every run has its right end, each try that counts happened once, nothing is left."""
        assert audit(self.conn) == []
        assert self.conn.execute(LEFT).fetchone() == (0, 0, 0, 0, 0, 0), LEFT
        for run, spec in self.runs:
            self._check_run(run, Graph.of(spec))
        self._check_history()

    def _check_run(self, run: int, graph: Graph) -> None:
        rows = self.conn.execute(
            "select task_index, map_index, state::text, epoch from task_instance where run_key = %s", [run]
        ).fetchall()
        ended: dict[int, set[str]] = {i: set() for i in range(graph.n)}
        for i, _, state, epoch in rows:
            ended[i].add(state)
            if state == "success" and epoch:
                assert self.ledger.outcomes[epoch] == "success", (run, i, epoch)
        for i, state in self.conn.execute("select task_index, virtual_state::text from mapped_task where run_key = %s", [run]):
            if not ended[i] or state in ("upstream_failed", "skipped"):
                ended[i].add(state)
        for i, states in ended.items():
            above = set().union(*(ended[u] for u in graph.upstream[i])) if graph.upstream[i] else {"success"}
            if above == {"success"}:
                assert states <= {"success", "failed"}, (run, i, states, above)
            else:
                assert states == {"upstream_failed"}, (run, i, states, above)
        leaves = [i for i in range(graph.n) if not graph.downstream[i]]
        bad = any(ended[i] & {"failed", "upstream_failed"} for i in leaves)
        assert self.world.run_state(run) == ("failed" if bad else "success"), ended

    def _check_history(self) -> None:
        """A try that counts is one process, begun once, that said so itself; or it was lost too often."""
        counted: Counter[tuple[int, int, int, int]] = Counter()
        rows = self.conn.execute(
            "select run_key, task_index, map_index, try_number, epoch, event, detail from task_event"
            " where event in ('succeed', 'fail', 'retry')"
        ).fetchall()
        for run, i, index, try_number, epoch, event, detail in rows:
            if epoch == 0:
                continue  # a task without code
            counted[run, i, index, try_number] += 1
            if "infrastructure_retries" in str((detail or {}).get("reason")):
                assert self.losses(run, i, index) > LOSSES
                continue
            assert self.ledger.outcomes[epoch] == ("success" if event == "succeed" else "failed"), (epoch, event, detail)
            assert self.ledger.begun[epoch].try_number == try_number
        assert set(counted.values()) <= {1}, counted.most_common(3)
        assert self.conn.execute(NOT_ONCE).fetchall() == []

    def losses(self, run: int, i: int, index: int) -> int:
        row = self.conn.execute(
            "select losses from task_instance where run_key = %s and task_index = %s and map_index = %s", [run, i, index]
        ).fetchone()
        return int(row[0])


def _chance(of: tuple[int, ...]) -> float:
    return zlib.crc32(repr(of).encode()) / 2**32
