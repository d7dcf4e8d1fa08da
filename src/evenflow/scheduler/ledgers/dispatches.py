"""What goes to workers, what has come back from them, and which processes are to end.

What a turn starts is given at once to workers whose claims wait, instead of waiting for their claims (ADR 0067). The claims are
served in the order in which they began to wait, each with what it would take: resumes first, then by priority. The tries that no
waiting claim takes wait for the next claim.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenflow.core.flow.state import InstanceKey
from evenflow.core.selection.order import DispatchClass, given_before, try_priority
from evenflow.core.states import TaskEvent
from evenflow.scheduler.catalog import TaskPlace
from evenflow.scheduler.facts import Facts
from evenflow.scheduler.ledgers.holds import Holds
from evenflow.scheduler.ledgers.moves import Moves
from evenflow.store.db.rows import Conn
from evenflow.store.scheduling import tasks
from evenflow.store.scheduling.tasks import Item


@dataclass(slots=True)
class Dispatches:
    facts: Facts
    moves: Moves
    holds: Holds
    sent: list[tasks.Dispatch] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)  # epochs
    takers: dict[int, str] = field(default_factory=dict)  # workers that are to have some of it, and the keys of their claims
    kills: list[int] = field(default_factory=list)
    intents: dict[int, dict[str, str]] = field(default_factory=dict)  # by epoch: what people wanted in this transaction
    cleaned: set[int] = field(default_factory=set)  # epochs, before this transaction, of what people end and is cleaned up first
    # From one epoch to another: resumes keep their results.
    _carried: dict[InstanceKey, tuple[int, int]] = field(default_factory=dict)

    def send(
        self,
        item: Item,
        event: TaskEvent,
        place: TaskPlace,
        holds: Sequence[int],
        *,
        run_priority: int,
        avoid: int = 0,
        dispatch_class: DispatchClass = DispatchClass.FIRST_START,
        detail: dict[str, Any] | None = None,
    ) -> None:
        """Move a task instance to the workers under a fresh epoch. Its history is written with its dispatch."""
        was, item.epoch = item.epoch, self.facts.catalog.epochs.take(self.facts.conn)
        if dispatch_class == DispatchClass.RESUME:
            self._carried[item.key] = (self._carried.get(item.key, (was,))[0], item.epoch)
        self.moves.apply(item, event, detail)
        last, item.last = item.last, None
        assert last is not None
        self.sent.append(
            tasks.Dispatch(
                item.epoch,
                item.run_key,
                item.task_index,
                item.map_index,
                item.try_number,
                dispatch_class,
                try_priority(run_priority, place.priority),
                place.limit_class.queue,
                holds,
                place.limit_class.weight,
                avoid,
                event,
                last.detail,
                item.was_state,
                item.was_epoch,
                item.losses,
            )
        )

    def end(self, epoch: int, holds: list[int], pool_slots: int, at_s: float) -> None:
        """Ends a dispatch, and gives back what it held."""
        self.pass_on(epoch)
        self.holds.release(holds, pool_slots, at_s)

    def pass_on(self, epoch: int) -> None:
        """Ends a dispatch whose limits pass to its successor."""
        self.ended.append(epoch)

    def write_ends(self, conn: Conn) -> None:
        if self.ended:
            tasks.delete_dispatches(conn, self.ended)

    def write(self, conn: Conn) -> None:
        if self.sent:
            tasks.insert_dispatches(conn, self.sent, self.takers)
        if self._carried:
            tasks.carry_values(conn, self._carried)
        if self.kills:
            tasks.kill_dispatches(conn, self.kills)


class _Taker:
    __slots__ = ("key", "resumes", "service_id", "slots", "taken")

    def __init__(self, service_id: int, claim: dict[str, Any]) -> None:
        self.service_id = service_id
        self.key: str = claim["key"]
        self.slots: int = claim["slots"]
        self.resumes: int = claim["resumes"]
        self.taken = 0

    def has_room(self, dispatch_class: DispatchClass) -> bool:
        return self.taken < (self.resumes if dispatch_class == DispatchClass.RESUME else self.slots)


def give(dispatches: Dispatches, waiting_claims: Iterable[tuple[int, dict[str, Any]]]) -> None:
    by_queue: dict[str, list[_Taker]] = defaultdict(list)
    for service_id, claim in waiting_claims:
        taker = _Taker(service_id, claim)
        for queue in claim["queues"]:
            by_queue[queue].append(taker)
    for sent in sorted(dispatches.sent, key=lambda d: given_before(d.dispatch_class, d.priority, d.epoch)):
        for taker in by_queue.get(sent.queue, ()):
            if taker.service_id != sent.avoid and taker.has_room(sent.dispatch_class):
                taker.taken += 1
                sent.worker = taker.service_id
                dispatches.takers[taker.service_id] = taker.key
                break
