"""A fleet of workers on this machine, native or of Celery: an autoscaler decides which workers should exist, and this module starts
and ends them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Sequence

from evenflow.core.executors import NATIVE
from evenflow.core.model import DEFAULT_EXECUTOR
from evenflow.core.scaling.fleet_options import serves
from evenflow.core.scaling.policy import ScalingPolicy
from evenflow.errors import ServiceFailed, SettingsError
from evenflow.runtime.up.child import Child, LogScreen
from evenflow.store.db.connect import AsyncConn, connect_async
from evenflow.store.db.failures import OUTAGES
from evenflow.store.db.notify import FLEETS, AsyncListener
from evenflow.store.serving import scaling
from evenflow.store.serving.executors import list_executors, lock_owners

LOOK_S = 1.0  # between two looks, in case a notification is lost
FAILED_S = 5.0  # until a failed start is repeated
STARTS = max(4, 2 * (os.cpu_count() or 1))  # at once: a start needs a processor, and the first should work while others begin


def fleet_here(target: str) -> str:
    """Returns the name of the fleet of ``evenflow up`` on this host; its workers are numbered."""
    return f"{'local' if target == 'native' else target}@{socket.gethostname()}"


class LocalFleet:
    """A fleet of the kind ``target``. ``make_child`` makes a worker of this name; a worker that is told to end is killed
    ``at_most_s`` later, with its tries.
    """

    def __init__(
        self,
        database_url: str,
        *,
        target: str,
        policy: ScalingPolicy,
        queues: Sequence[str],
        make_child: Callable[[str], Child],
        screen: LogScreen,
        at_most_s: float,
    ) -> None:
        self._url, self._target, self._policy, self._queues = database_url, target, policy, queues
        self._make_child, self._screen, self._at_most_s = make_child, screen, at_most_s
        self.name = fleet_here(target)
        self._children: dict[str, Child] = {}
        self._ending: dict[str, asyncio.Task[None]] = {}
        self._starting: set[asyncio.Task[None]] = set()
        self._starts = asyncio.Semaphore(STARTS)
        self._ended: set[str] = set()
        self._news = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None
        self._listener: AsyncListener | None = None

    async def start(self) -> None:
        """Registers the fleet, so far without workers. Raises :class:`SettingsError` when another fleet serves its queues."""
        async with await connect_async(self._url, name=self.name) as conn:
            async with conn.transaction():
                await lock_owners(conn)
                await self._set(conn)
                await scaling.reset_native(conn, self.name)
            await self._say_what_is_not_served(conn)
        self._listener = AsyncListener(
            self._url,
            [FLEETS],
            lambda *_: self._news.set(),
            lambda error: self._screen.say(f"the workers that there are to be are not known: {_told(error)}"),
            name=self.name,
        )
        await self._listener.start()
        self._keeping = asyncio.create_task(self._keep(), name="keep workers")

    async def _set(self, conn: AsyncConn) -> None:
        """While queues keep their owners."""
        rival = await scaling.find_rival(conn, self.name, self._queues)
        if rival is not None:
            raise SettingsError(
                f"Fleet {rival[0]!r} serves {', '.join(rival[1])} already, and a queue is of one fleet. Serve other queues "
                f"here (EVENFLOW_QUEUES), or type: evenflow autoscaler delete {rival[0]}"
            )
        by = f"evenflow up on {socket.gethostname()}"
        queues, policy = self._queues, self._policy
        await scaling.set_fleet(conn, name=self.name, target=self._target, queues=queues, policy=policy, options={}, by=by)

    async def _say_what_is_not_served(self, conn: AsyncConn) -> None:
        """Of queues of other executors the fleet gets no demand. They may become its own while it runs, so it starts."""
        of = {queue: (each["name"], each["kind"]) for each in await list_executors(conn) for queue in each["queues"]}
        for queue in self._queues:
            executor, kind = of.get(queue, (DEFAULT_EXECUTOR, NATIVE))
            if not serves(self._target, kind):
                self._screen.say(
                    f"fleet {self.name}: the queue {queue} is of executor {executor}, of kind {kind}, so no worker starts for it. "
                    f"Type: evenflow executors set NAME --kind {self._target} --queue {queue} --slots 64; or set EVENFLOW_QUEUES "
                    f"to queues of such an executor"
                )

    async def stop(self) -> None:
        """Drains and ends all its workers, then removes the fleet."""
        if self._keeping is None:
            return
        self._keeping.cancel()
        assert self._listener is not None
        await self._listener.stop()
        for name in list(self._children):
            self._end(name)
        await asyncio.gather(self._keeping, *self._ending.values(), *self._starting, return_exceptions=True)
        try:
            async with await connect_async(self._url, name=self.name) as conn:
                await scaling.delete_fleet(conn, self.name)
        except OUTAGES as error:
            self._screen.say(f"the fleet {self.name} is known until the next start: {error}")

    def hurry(self) -> None:
        for child in self._children.values():
            child.hurry()

    async def _keep(self) -> None:
        conn: AsyncConn | None = None
        trouble = ""
        try:
            while True:
                self._news.clear()
                try:
                    conn = conn or await connect_async(self._url, name=self.name)
                    await self._look(conn)
                    trouble = ""
                except Exception as error:  # such as a full disk: it may be over at the next look
                    if not trouble:
                        what = "not known" if isinstance(error, OUTAGES) else "not looked after"
                        trouble = f"the workers that there are to be are {what}: {_told(error)}"
                        self._screen.say(trouble)
                    if conn is not None:
                        await conn.close()
                    conn = None
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), LOOK_S)
        finally:
            if conn is not None:
                await conn.close()

    async def _look(self, conn: AsyncConn) -> None:
        rows = dict(await scaling.list_native(conn, self.name))
        for name, leaving in rows.items():
            if leaving and name not in self._children:
                self._ended.add(name)
            elif leaving:
                self._end(name)
            elif name not in self._children:
                self._begin(name)
        for name in self._children.keys() - rows.keys():
            self._end(name)
        if self._ended:
            gone, self._ended = self._ended, set()
            await scaling.forget_native(conn, self.name, gone)

    def _begin(self, name: str) -> None:
        child = self._children[name] = self._make_child(name)
        starting = asyncio.create_task(self._start(child), name=f"start {name}")
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)

    async def _start(self, child: Child) -> None:
        try:
            async with self._starts:
                if not self._is_wanted(child):
                    return
                await child.start()
        except ServiceFailed as error:
            self._screen.say(f"{error}; it is tried again in {FAILED_S:g} s")
            await asyncio.sleep(FAILED_S)
            if self._is_wanted(child) and not child.is_ready:
                self._end(child.name)

    def _is_wanted(self, child: Child) -> bool:
        """Returns whether the child has not been ended meanwhile."""
        return self._children.get(child.name) is child and child.name not in self._ending

    def _end(self, name: str) -> None:
        if name not in self._ending:
            self._ending[name] = asyncio.create_task(self._finish(name), name=f"end {name}")

    async def _finish(self, name: str) -> None:
        try:
            await self._children[name].end(at_most_s=self._at_most_s)
        finally:
            del self._children[name], self._ending[name]
            self._news.set()


def _told(error: Exception) -> str:
    return str(error) or type(error).__name__
