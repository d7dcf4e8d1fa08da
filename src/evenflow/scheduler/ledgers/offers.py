"""What may begin: offered to the round, to the run before, or to be expanded."""

from __future__ import annotations

from dataclasses import dataclass, field

from evenflow.scheduler.ledgers.moves import Item, Key


@dataclass(slots=True)
class Offers:
    """Nothing of it is written here: what does not start becomes lanes (:mod:`evenflow.scheduler.candidates`)."""

    ready: list[Item] = field(default_factory=list)  # candidates for the round
    returning: dict[Key, float] = field(default_factory=dict)  # of the items in ``ready`` that return: when each was queued first
    gated: list[Item] = field(default_factory=list)  # ready, if the previous run lets them
    unexpanded: list[Item] = field(default_factory=list)  # mapped tasks that stand for their instances until they are expanded
    _begun: set[Key] = field(default_factory=set)  # of what waited for its upstreams

    def begin(self, item: Item, *, expands: bool) -> None:
        """Its upstreams let it begin: once, as a rule such as one_success is met by several upstreams of one transaction."""
        if item.key not in self._begun:
            self._begun.add(item.key)
            (self.unexpanded if expands else self.ready).append(item)

    def has_begun(self, key: Key) -> bool:
        """In this transaction."""
        return key in self._begun

    def put_back(self, item: Item, queued_at_s: float) -> None:
        """It returns in the ordinary way, and keeps the place of the time at which it was queued first."""
        self.ready.append(item)
        self.returning[item.key] = queued_at_s
