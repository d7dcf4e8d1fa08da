"""The scheduler as a service: a thread for turns and one for each agenda of duties, each with its own connections.

All begin again when the database went away. A scheduler keeps nothing that outlives a transaction, so there is nothing to
drain: it stops after the transaction in hand.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

import psycopg

from evenflow.core.limits import HANG_S
from evenflow.core.metrics import DATABASE_FAILURES
from evenflow.errors import DatabaseUnavailable
from evenflow.scheduler import observations as seen
from evenflow.scheduler.database import UNFIT, Fitness, Outage
from evenflow.scheduler.duties import SchedulerPresence, decisions, housekeeping, pulse
from evenflow.scheduler.duties.agenda import Agenda, Duty
from evenflow.scheduler.duties.partitions import make_history_partitions
from evenflow.scheduler.turn_metrics import Contention, TurnMetrics
from evenflow.scheduler.turns import take_turns
from evenflow.store.db.connect import DEFAULT_TIMEOUTS, HOUSEKEEPING, TURNS, Timeouts, connect
from evenflow.store.db.failures import OUTAGES
from evenflow.store.db.notify import INBOX
from evenflow.store.db.sessions import LivingConnection
from evenflow.store.scheduling import inbox
from evenflow.store.scheduling.incarnation import notice_server
from evenflow.store.serving import callbacks
from evenflow.telemetry.health import HealthMonitor
from evenflow.telemetry.observing import observe
from evenflow.telemetry.service import Loops, Service

RETRY_S = 0.5  # after a failure; the database needs about a second to come back, and other schedulers continue meanwhile

TURN_WITHIN_S = 10.0  # a scheduler that waits sweeps each second, and a batch under load takes well under a second
DUTIES_WITHIN_S = 600.0  # a duty may create thousands of runs, one transaction after the other
GC_THRESHOLD = 50_000  # objects; a turn makes some thousands that live as long as it and hold no cycles


class SchedulerService(Service):
    """One of any number of equal schedulers. User code never runs here, and DAG files are never read (R-HA7).

    ``default_timezone`` is the one that this host's configuration requires of the database, if any.
    """

    kind = "scheduler"

    def __init__(
        self, database_url: str, *, name: str, default_timezone: str | None = None, health: HealthMonitor | None = None
    ) -> None:
        super().__init__(name, health)
        self._url = database_url
        self._stop = threading.Event()
        self._metrics = TurnMetrics(self.health.meter, self._turned)
        self._contention = Contention(self.health.meter)
        self._presence = SchedulerPresence(self.health)
        self._fitness = Fitness(default_timezone)
        self._outage = Outage(RETRY_S)
        self._threads: list[threading.Thread] = []

    async def _begin(self) -> Loops:
        """Raises :class:`EvenflowError` when the database is not there, or does not fit."""
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD)
        await asyncio.to_thread(self._register)
        self._pulses = {name: self.health.loop(name) for name in ("turns", "pulse")}
        self._pulses |= {name: self.health.loop(name, DUTIES_WITHIN_S) for name in ("duties", "housekeeping")}
        self._database = self.health.need("database", TURN_WITHIN_S, "its last transaction")
        return {
            "turns": self._run("turns", self._take_turns),
            "pulse": self._keep("pulse", pulse(self._presence, self._contention)),
            "duties": self._keep("duties", decisions(self.health.meter, self._fitness)),
            "housekeeping": self._keep("housekeeping", housekeeping(), HOUSEKEEPING),
        }

    async def _finish(self) -> None:
        if not self._stop.is_set():
            self._stop.set()
            await asyncio.to_thread(self._join)

    async def _leave(self) -> None:
        await self._finish()

    def _connect(self, what: str, timeouts: Timeouts = DEFAULT_TIMEOUTS) -> psycopg.Connection[object]:
        """To decide on: a server that is new to everybody has begun its incarnation before."""
        conn = connect(self._url, name=f"{self.name} {what}", timeouts=timeouts, generic_plans=True)
        try:
            self._notice(conn)
        except BaseException:
            conn.close()
            raise
        self._outage.is_over()
        return conn

    def _notice(self, conn: psycopg.Connection[object]) -> None:
        found = notice_server(conn, by=self.name)
        if found is not None:
            observe(seen.server_changed(str(found)))

    def _register(self) -> None:
        """Before the first turn: it writes history, which needs a partition."""
        with connect(self._url, name=self.name, timeouts=HOUSEKEEPING) as conn:
            self._fitness.check(conn)
            self._notice(conn)
            make_history_partitions(conn)
            self._presence.beat(conn)
            if callbacks.restore_dag(conn):
                observe(seen.callbacks_restored())

    def _join(self) -> None:
        """Joins the threads, after waking the listening one, and signs off."""
        try:
            with connect(self._url, name=self.name) as conn:
                inbox.notify(conn, INBOX)
                for thread in self._threads:
                    thread.join()
                self._presence.sign_off(conn)
        except (psycopg.Error, DatabaseUnavailable) as error:
            observe(seen.not_signed_off(str(error)))
            for thread in self._threads:
                thread.join()

    async def _run(self, name: str, work: Callable[[], None]) -> None:
        """In a thread of its own. Raises what ends the service."""
        ended: Future[None] = Future()
        ended.set_running_or_notify_cancel()

        def run() -> None:
            try:
                work()
            except Exception as error:
                ended.set_exception(error)
            else:
                ended.set_result(None)

        thread = threading.Thread(target=run, name=f"{self.name} {name}", daemon=True)
        self._threads.append(thread)
        self.health.meter.count(DATABASE_FAILURES, 0, name)
        thread.start()
        await asyncio.wrap_future(ended)

    async def _keep(self, name: str, duties: list[Duty], timeouts: Timeouts = DEFAULT_TIMEOUTS) -> None:
        agenda = Agenda(duties, partial(self._performed, name))
        await self._run(name, lambda: self._with_connection(name, lambda conn: agenda.perform(conn, self._stop), timeouts))

    def _take_turns(self) -> None:
        budget_s = HANG_S

        def turns(conn: psycopg.Connection[object]) -> None:
            nonlocal budget_s
            assert isinstance(conn, LivingConnection)
            conn.budget_s = budget_s
            self._contention.pid = conn.info.backend_pid
            with connect(self._url, name=f"{self.name} listen") as listener:
                again = partial(self._connect, "turns", TURNS)
                try:
                    take_turns(conn, listener, self._metrics, self._stop, again)
                finally:
                    budget_s = conn.budget_s

        self._with_connection("turns", turns, TURNS)

    def _with_connection(
        self, what: str, work: Callable[[psycopg.Connection[object]], None], timeouts: Timeouts = DEFAULT_TIMEOUTS
    ) -> None:
        """Does ``work`` on a connection until it returns, which it does when the service stops; begins again when it raises."""
        while not self._stop.is_set():
            self._pulses[what].beat()
            try:
                with self._connect(what, timeouts) as conn:
                    work(conn)
            except OUTAGES as error:
                self._outage.note(what, error)
                observe(seen.thread_began_again(what), self.health.meter)
                self._stop.wait(RETRY_S)
            except UNFIT:
                raise
            except Exception as error:
                observe(seen.thread_failed(what, RETRY_S, error), self.health.meter)
                self._stop.wait(RETRY_S)

    def _turned(self) -> None:
        self._pulses["turns"].beat()
        self._database.beat()

    def _performed(self, loop: str, duty: str, took_s: float, *, failed: bool) -> None:
        self._pulses[loop].beat()
        observe(seen.duty_performed(duty, took_s, failed), self.health.meter)
