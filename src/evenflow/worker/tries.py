"""The tries that this worker has in hand, and the slots that they use."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from evenflow.forking.remains import still_running
from evenflow.wire.messages import Assignment
from evenflow.worker import limits
from evenflow.worker.attempt import Attempt, Tools


class Tries:
    """``slots`` are ordinary; ``resume_slots`` come on top, and are for resumes when no ordinary one is free (R-DQ3). ``room`` is
    set while an ordinary slot is free, ``resumes_only`` while only the others are, ``resume_room`` while any of the others is.
    ``apart``: ordinary slots are for tries whose sender waits for them (:meth:`ended`), and the others are for the rest.
    """

    def __init__(self, slots: int, resume_slots: int, tools: Tools, *, apart: bool = False) -> None:
        self._slots, self._tools, self._apart = slots, tools, apart
        self.resume_slots = resume_slots
        self._attempts: dict[int, Attempt] = {}
        self._leaving: dict[int, Attempt] = {}  # ended ones whose exit is not stored yet; their leftovers may have to end, too
        self._ending: set[asyncio.Task[None]] = set()
        self._awaited: dict[int, asyncio.Future[None]] = {}  # by epoch: done when the try has ended
        self._over_at: dict[int, float] = {}  # by epoch, in order of their end: when tries ended, by the loop's clock
        self._leaves_for: str | None = None  # why no try begins here any more
        self._giving_up: asyncio.TimerHandle | None = None  # set while they are frozen
        self.room = asyncio.Event()
        self.resumes_only = asyncio.Event()
        self.resume_room = asyncio.Event()
        self._over = asyncio.Event()
        self._over.set()
        self._look_for_room()

    @property
    def free(self) -> int:
        return max(self._slots - len(self._awaited if self._apart else self._attempts), 0)

    @property
    def spare(self) -> int:
        """Slots that are free for resumes only."""
        return max(self._slots + self.resume_slots - len(self._attempts) - self.free, 0)

    @property
    def outrun(self) -> list[int]:
        """Epochs of tries that cannot be ended yet."""
        return sorted(self._tools.outrun)

    def left_running(self) -> list[int]:
        """The pids of processes that tries with an ordinary end have left."""
        return [pid for pids in still_running(self._tools.left).values() for pid in pids]

    @property
    def epochs(self) -> list[int]:
        return list(self._attempts)

    @property
    def starting(self) -> list[int]:
        """Epochs of tries whose process does not run yet."""
        return [epoch for epoch, attempt in self._attempts.items() if not attempt.has_started]

    @property
    def begun(self) -> list[int]:
        """Epochs of tries that have asked for a process."""
        return [epoch for epoch, attempt in self._attempts.items() if attempt.is_begun]

    def accept(self, assignments: Iterable[Assignment]) -> None:
        """Begins tries that are new here: the same assignment may come twice, the second time when its try has long ended. An
        assigned try begins even above the slots, because no other worker has it.
        """
        for assignment in assignments:
            if assignment.epoch not in self._attempts and assignment.epoch not in self._over_at:
                attempt = self._attempts[assignment.epoch] = Attempt(assignment, self._tools, self._ended)
                self._over.clear()
                if self._leaves_for is None:
                    attempt.begin()
                else:
                    attempt.give_back(self._leaves_for)
        self._look_for_room()

    def has_had(self, epoch: int) -> bool:
        """Returns whether the try has begun here, and is over."""
        return epoch in self._over_at

    def end(self, epochs: Iterable[int], reason: str) -> None:
        """Ends those of ``epochs`` that are in hand, and reports their exit."""
        for epoch in epochs:
            if (attempt := self._attempts.get(epoch)) is not None:
                attempt.end(reason)

    def give_back(self, reason: str) -> None:
        """Gives back tries that have not begun, and later assignments: others begin them."""
        self._leaves_for = reason
        for attempt in list(self._attempts.values()):
            attempt.give_back(reason)

    def warn(self, what: str) -> None:
        """Warns the readers of the logs of all running tries."""
        for attempt in self._attempts.values():
            attempt.warn(what)

    def revoke(self, epochs: Iterable[int]) -> None:
        """Kills those of ``epochs`` that are in hand, before anything else continues, without a report: they belong to others."""
        for epoch in epochs:
            if (attempt := self._attempts.get(epoch)) is not None:
                attempt.abandon()
            self._end_left(epoch)

    def stored(self, epoch: int) -> None:
        """Notes that the exit of a try is stored: what it has left may stay."""
        if (attempt := self._leaving.pop(epoch, None)) is not None:
            attempt.leftovers.let_go()

    def freeze(self, since: float) -> None:
        """Notes that since then, by the loop's clock, their owner is unknown. Their templates have stopped them, each by itself."""
        if self._giving_up is None:
            self._giving_up = asyncio.get_running_loop().call_at(since + limits.FROZEN, self._give_up)
            self._tools.going.clear()
            for attempt in self._attempts.values():
                attempt.freeze(since)

    def go_on(self) -> None:
        """Lets them continue: they are this worker's."""
        self._tools.going.set()
        if self._giving_up is not None:
            self._giving_up.cancel()
            self._giving_up = None
            for attempt in list(self._attempts.values()):
                attempt.go_on()

    def abandon_all(self) -> None:
        """Kills all at once without reports."""
        for attempt in list(self._attempts.values()):
            attempt.abandon()
        for epoch in list(self._leaving):
            self._end_left(epoch)

    async def ended(self, epoch: int) -> None:
        """Returns when this try is not in hand; at once if it never was."""
        if epoch in self._attempts:
            awaited = self._awaited.setdefault(epoch, asyncio.get_running_loop().create_future())
            self._look_for_room()
            await asyncio.shield(awaited)

    async def over(self) -> None:
        """Returns when no try is in hand, and what must not stay is gone."""
        await self._over.wait()
        await asyncio.gather(*self._ending)

    def _end_left(self, epoch: int) -> None:
        if (attempt := self._leaving.pop(epoch, None)) is not None:
            ending = asyncio.get_running_loop().create_task(attempt.leftovers.end())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    def _remember(self, epoch: int) -> None:
        now = self._over_at[epoch] = asyncio.get_running_loop().time()
        while self._over_at[oldest := next(iter(self._over_at))] < now - limits.EPOCHS_KNOWN:
            del self._over_at[oldest]

    def _give_up(self) -> None:
        for attempt in list(self._attempts.values()):
            attempt.give_up(f"frozen for {limits.FROZEN:g} s, while nobody answered this worker")

    def _look_for_room(self) -> None:
        free, spare = self.free > 0, self.spare > 0
        for event, is_so in ((self.room, free), (self.resumes_only, spare and not free), (self.resume_room, spare)):
            if is_so:
                event.set()
            else:
                event.clear()

    def _ended(self, attempt: Attempt) -> None:
        del self._attempts[attempt.epoch]
        if attempt.leftovers:  # an ordinary end: the processes may stay once its exit is stored
            self._leaving[attempt.epoch] = attempt
        self._remember(attempt.epoch)
        if (awaited := self._awaited.pop(attempt.epoch, None)) is not None:
            awaited.set_result(None)
        self._look_for_room()
        if not self._attempts:
            self._over.set()
