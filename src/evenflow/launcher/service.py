"""The launcher as a service. Any number may run, and all are active: a launcher passes over what another has taken."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from evenflow.control.service import DatabaseService
from evenflow.errors import SettingsError
from evenflow.launcher import limits
from evenflow.launcher import observations as seen
from evenflow.launcher.executor import LaunchLedger, PushExecutor
from evenflow.launcher.sending import Sending
from evenflow.store.db.connect import AsyncConn, open_pool
from evenflow.store.db.notify import DISPATCH, RESUMES
from evenflow.store.serving.executors import LaunchedExecutor, list_launched
from evenflow.telemetry.health import HealthMonitor
from evenflow.telemetry.observing import observe
from evenflow.telemetry.service import Loops

Make = Callable[[LaunchedExecutor, LaunchLedger], PushExecutor]


class LauncherService(DatabaseService):
    """Knows the database, brokers and clusters, and never runs user code. ``make`` makes the object for an executor; it raises
    :class:`SettingsError` if this launcher lacks what the executor needs.
    """

    kind = "launcher"
    turn_s = limits.LOOK_S
    channels = (DISPATCH, RESUMES)

    def __init__(self, database_url: str, *, name: str, make: Make, health: HealthMonitor | None = None) -> None:
        super().__init__(database_url, name, health)
        self._make = make
        self._served: dict[str, Sending] = {}
        self._refused: dict[str, str] = {}
        self._told: dict[str, Any] = {}

    async def _begin(self) -> Loops:
        loops = await super()._begin()
        self._pool = await open_pool(self._url, name=self.name, max_size=limits.CONNECTIONS)
        self._opened.push_async_callback(self._pool.close)
        self._ledger = LaunchLedger(self._pool, self.health.meter)
        return loops

    async def _after_turns(self) -> None:
        """Closes the executors. Another launcher sends the waiting tries, or this one later."""
        while self._served:
            _, sending = self._served.popitem()
            await sending.close()

    def _detail(self) -> dict[str, Any]:
        """Returns the executors that it serves, why it does not serve others, or they take nothing now, and what it knows of tries
        that no worker has claimed there.
        """
        troubles = {name: sending.trouble for name, sending in self._served.items() if sending.trouble is not None}
        waiting = {name: told for name, sending in self._served.items() if (told := sending.waiting)}
        own = {"executors": sorted(self._served), "refused": {**self._refused, **troubles}, "waiting": waiting}
        return {**super()._detail(), **own}

    def _heard(self, channel: str, word: str) -> None:
        if word:  # tries were given to workers, so they are not to be sent
            return
        for sending in self._served.values():
            sending.news.set()

    async def _turn(self, conn: AsyncConn) -> None:
        """Serves the existing executors, with their present settings."""
        rows = {row.name: row for row in await list_launched(conn)}
        for name, sending in list(self._served.items()):
            if rows.get(name) != sending.row:
                await self._served.pop(name).close()
        for name, row in rows.items():
            if name not in self._served:
                self._serve(row)
        self._refused = {name: reason for name, reason in self._refused.items() if name in rows}
        if self._detail() != self._told:
            self._told = self._detail()
            await self._beat(conn)  # so that all know it at once

    async def _rest(self, began: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(began + limits.LOOK_S):
                await self._news.wait()

    def _serve(self, row: LaunchedExecutor) -> None:
        try:
            self._served[row.name] = Sending(self._pool, row, self._make(row, self._ledger), self._ledger)
            self._refused.pop(row.name, None)
        except SettingsError as error:
            if self._refused.get(row.name) != str(error):
                self._refused[row.name] = str(error)
                observe(seen.executor_refused(row.name, str(error)))
