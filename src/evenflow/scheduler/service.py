"""The scheduler as a service: a thread that takes turns, a thread for the other duties, each with connections of its own.

Both begin again when the database went away. A scheduler keeps nothing that outlives a transaction, so there is nothing to
drain: it stops after the transaction in hand.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Callable

import psycopg

from evenflow.errors import DatabaseUnavailable
from evenflow.scheduler.duties import Presence, all_duties, perform_due
from evenflow.scheduler.tally import Tally
from evenflow.scheduler.turns import take_turns
from evenflow.store import inbox
from evenflow.store.connect import connect
from evenflow.store.migrate import check
from evenflow.store.notify import INBOX

RETRY_S = 0.5  # after a failure; the database needs about a second to come back, and other schedulers go on meanwhile

GC_THRESHOLD = 50_000  # objects; a turn makes some thousands that live as long as it and hold no cycles

log = logging.getLogger(__name__)


class SchedulerService:
    """One of any number of equal schedulers. User code never runs here, and DAG files are never read (R-HA7)."""

    def __init__(self, database_url: str, *, name: str) -> None:
        self.name = name
        self._url = database_url
        self._stop = threading.Event()
        self._tally = Tally()
        self._presence = Presence(name, self._tally)
        self._threads: list[threading.Thread] = []
        self._failed: asyncio.Future[BaseException] | None = None

    async def start(self) -> None:
        """Raises :class:`EvenflowError` when the database is not there or not of the right version."""
        self._failed = asyncio.get_running_loop().create_future()
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD)
        await asyncio.to_thread(self._register)
        due: dict[str, float] = {}
        duties = all_duties(self._presence)
        self._run("turns", self._take_turns)
        self._run("duties", lambda: self._with_connection("duties", lambda conn: perform_due(conn, duties, due, self._stop)))

    async def drain(self) -> None:
        await self.stop()

    async def stop(self) -> None:
        if not self._stop.is_set():
            self._stop.set()
            await asyncio.to_thread(self._finish)

    async def failed(self) -> BaseException:
        assert self._failed is not None
        return await self._failed

    def _register(self) -> None:
        with connect(self._url, name=self.name) as conn:
            check(conn)
            self._presence.beat(conn)

    def _finish(self) -> None:
        """Joins the threads, waking the one that listens, and signs off."""
        try:
            with connect(self._url, name=self.name) as conn:
                inbox.notify(conn, INBOX)
                for thread in self._threads:
                    thread.join()
                self._presence.sign_off(conn)
        except (psycopg.Error, DatabaseUnavailable) as error:
            log.warning("could not sign off: %s", error)
            for thread in self._threads:
                thread.join()

    def _run(self, name: str, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, name=f"{self.name} {name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _take_turns(self) -> None:
        def turns(conn: psycopg.Connection[object]) -> None:
            with connect(self._url, name=f"{self.name} listen") as listener:
                take_turns(conn, listener, self._tally, self._stop)

        self._with_connection("turns", turns)

    def _with_connection(self, what: str, work: Callable[[psycopg.Connection[object]], None]) -> None:
        """Does ``work`` on a connection until it returns, which it does when the service stops; begins again when it raises."""
        while not self._stop.is_set():
            try:
                with connect(self._url, name=f"{self.name} {what}", generic_plans=True) as conn:
                    work(conn)
            except (psycopg.OperationalError, DatabaseUnavailable) as error:
                log.warning("%s: lost the database, trying again in %g s: %s", what, RETRY_S, " ".join(str(error).split()))
                self._stop.wait(RETRY_S)
            except Exception:
                log.exception("%s: failed, beginning again in %g s", what, RETRY_S)
                self._stop.wait(RETRY_S)
