"""Tries for workers whose claims wait: what a turn starts is theirs at once, instead of waiting for their claims (ADR 0067).

The claims are served in the order in which they began to wait, each with what it would take: resumes first, then by priority. What
none of them takes waits for whoever comes first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from evenflow.core.selection.order import given_before
from evenflow.scheduler.ledgers.dispatches import Dispatches
from evenflow.store.serving.dispatch import RESUME


class _Taker:
    __slots__ = ("key", "resumes", "service_id", "slots", "taken")

    def __init__(self, service_id: int, claim: dict[str, Any]) -> None:
        self.service_id = service_id
        self.key: str = claim["key"]
        self.slots: int = claim["slots"]
        self.resumes: int = claim["resumes"]
        self.taken = 0

    def has_room(self, dispatch_class: int) -> bool:
        return self.taken < (self.resumes if dispatch_class == RESUME else self.slots)


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
