"""Processes that a try's processes have left running when they ended: their author is told, or they are ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from evenflow.forking.owned_child import OwnedChild
from evenflow.forking.remains import Outrun, end_remains, named, still_running
from evenflow.telemetry.observing import observe
from evenflow.wire.messages import Assignment
from evenflow.worker import limits
from evenflow.worker import observations as seen


class Leftovers:
    """The leftovers of one try. ``outrun`` has the epochs of tries whose processes fork more quickly than they are killed,
    ``known`` the marks of tries that have left processes; ``note`` writes into the try's log.
    """

    def __init__(self, assignment: Assignment, outrun: set[int], known: set[int], note: Callable[[str], None]) -> None:
        self._epoch, self._task_id, self._note = assignment.epoch, assignment.task_id, note
        self._outrun, self._known = outrun, known
        self._of: list[OwnedChild] = []  # ended ones

    def __bool__(self) -> bool:
        """Whether there may be leftovers."""
        return bool(self._of)

    def add(self, child: OwnedChild) -> None:
        self._of.append(child)

    async def tell(self, *, waits: bool) -> None:
        """Tells the author in the log, if he may not know. Processes in the sessions of the try's own processes are being
        killed. ``waits``: the task is deferred, mostly to wait for what it has started.
        """
        marks = {child.mark for child in self._of}
        asked = marks | self._known
        sessions = {child.pid for child in self._of if child.pid is not None}
        try:
            running = await asyncio.to_thread(still_running, asked, sessions)
        except OSError as error:  # too many files are open: the end of the try is still reported
            self._note(f"what it has left running cannot be found: {error}")
            return
        self._known.difference_update(asked - running.keys())
        self._known.update(marks & running.keys())
        if left := [pid for mark in marks for pid in running.get(mark, ())]:
            count = f"{len(left)} process{'' if len(left) == 1 else 'es'}"
            self._note(f"deferred, with {count} of its own: {named(left)}" if waits else f"left {count} running: {named(left)}")

    async def end(self) -> None:
        """Kills all processes that the try has left in their own sessions."""
        if left := await self._killed():
            names = ", ".join(map(str, left))
            self._note(f"processes that it has started could not be killed, and are still there: {names}")
            observe(seen.processes_not_killed(self._task_id, self._epoch, names))
        self.let_go()

    def let_go(self) -> None:
        """Stops watching the processes: they may stay, or are gone."""
        for child in self._of:
            child.let_go()
        self._of.clear()

    async def _killed(self) -> list[int]:
        """Returns those that hang. Kills the others, however long that takes: the task must not begin again beside them."""
        try:
            while True:
                try:
                    return await asyncio.to_thread(end_remains, {child.mark for child in self._of})
                except Outrun as outrun:
                    self._tell_outrun(outrun)
                await asyncio.sleep(limits.OUTRUN_PAUSE)
        finally:
            self._outrun.discard(self._epoch)

    def _tell_outrun(self, outrun: Outrun) -> None:
        observe(seen.try_outruns(self._task_id, self._epoch, str(outrun)))
        if self._epoch not in self._outrun:
            self._outrun.add(self._epoch)
            self._note(f"{outrun}; this worker keeps trying, and reports the end of the try when all are gone")
