"""What the processes of a try have left running when they ended: told to its author, or ended."""

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
    """Of one try. ``outrun`` holds epochs of tries whose processes fork more quickly than they are killed, ``known`` the marks of
    tries that have left something; ``note`` writes into its log.
    """

    def __init__(self, assignment: Assignment, outrun: set[int], known: set[int], note: Callable[[str], None]) -> None:
        self._epoch, self._task_id, self._note = assignment.epoch, assignment.task_id, note
        self._outrun, self._known = outrun, known
        self._of: list[OwnedChild] = []  # that have ended

    def __bool__(self) -> bool:
        """Whether there may be any."""
        return bool(self._of)

    def add(self, child: OwnedChild) -> None:
        self._of.append(child)

    async def tell(self) -> None:
        """Its author may not know. What is in the sessions of its own processes is being killed."""
        marks = {child.mark for child in self._of}
        asked = marks | self._known
        sessions = {child.pid for child in self._of if child.pid is not None}
        try:
            running = await asyncio.to_thread(still_running, asked, sessions)
        except OSError as error:  # too many files are open: its end is told all the same
            self._note(f"what it has left running cannot be found: {error}")
            return
        self._known.difference_update(asked - running.keys())
        self._known.update(marks & running.keys())
        if left := [pid for mark in marks for pid in running.get(mark, ())]:
            self._note(f"left {len(left)} process{'' if len(left) == 1 else 'es'} running: {named(left)}")

    async def end(self) -> None:
        """Whatever its processes have left in sessions of their own."""
        if left := await self._killed():
            names = ", ".join(map(str, left))
            self._note(f"processes that it has started could not be killed, and are still there: {names}")
            observe(seen.processes_not_killed(self._task_id, self._epoch, names))
        self.let_go()

    def let_go(self) -> None:
        """They may stay, or are gone."""
        for child in self._of:
            child.let_go()
        self._of.clear()

    async def _killed(self) -> list[int]:
        """Those that hang. However long the others take: beside them the task must not begin again."""
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
